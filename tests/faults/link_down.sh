#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The server's link goes down and up again. What is in flight ends in time. Whether the channel gets
# through to the server afterwards is the device's matter: Soft-RoCE's own queue pair for
# connecting is stuck then (docs/testing_in_a_vm.md), so there the devices are made anew, and with
# them the server and the client.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

device="${VERBENA_TEST_DEVICE%pair}"

pair
fault client server
ip link set vb down
expect_lost_in_time
await 20 server connections -eq 0
show server
expect server left_alone_ms -le $((2 * DETECTION_MS + SLACK_MS))
sleep 2
expect client longest_failed_ms -le $((CONNECT_TIMEOUT_MS + DETECTION_MS + SLACK_MS))
ip link set vb up
vm_pair
show client

if [[ "$device" == siw ]]; then
  healed
  expect_recovery
else
  sleep 6
  # Not even now does a call wait for longer than an attempt.
  expect client longest_failed_ms -le $((CONNECT_TIMEOUT_MS + DETECTION_MS + SLACK_MS))
fi
finish

say "the devices are made anew"
rdma link delete "${device}1"
rdma link delete "${device}2"
rdma link add "${device}1" type "$device" netdev va
rdma link add "${device}2" type "$device" netdev vb
sleep 1
pair
expect_unharmed
finish

end_test
