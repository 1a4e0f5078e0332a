#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Connecting through a network that loses every fifth packet of the client. One lost request costs
# an attempt, CONNECT_TIMEOUT_MS. The lost last message of the handshake costs nothing, since the
# server takes the client's first call for it; the kernel asks for it again after 4.3 s only.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

KERNELS_PATIENCE_MS=4300

target="rdma:$VERBENA_TEST_HOST:7100"
start server server device="$server_device"
tc qdisc replace dev va root netem loss 20%
for ((round = 1; round <= 16; ++round)); do
  start client client in_flight=4 first_id=$((round * 100000))
  tell client go
  await 40 client ok -gt 20
  tell client stop
  await 70 client in_flight -eq 0
  # Well below, and far above what calls need for packets that are lost.
  expect client longest_ok_ms -le $((KERNELS_PATIENCE_MS * 3 / 4))
  expect client longest_failed_ms -le $((CONNECT_TIMEOUT_MS + DETECTION_MS + SLACK_MS))
  end_client
done
tc qdisc del dev va root
end_server
end_test
