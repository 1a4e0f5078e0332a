#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A process that is killed while its host and the network are well.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

say "the server is killed with 64 calls in flight, and started again after a while"
pair in_flight=64
fault client
kill_now server
expect_lost_in_time
sleep 3
expect client lost -ge 1
# Each attempt is refused at once: 20, 40, 80 ... ms, or half of that, lie between them.
expect client failed_attempts -ge 3
expect client failed_attempts -le 12
start server server device="$server_device"
healed
expect_recovery
expect client connects -ge 2
await 20 client ok -gt $(($(get client ok) + 200))
finish

say "the server is killed, and its successor is there at once"
pair in_flight=64
fault client
kill_now server
start server server device="$server_device"
healed
expect_lost_in_time
expect_recovery
finish

say "the client is killed in the middle of its traffic, and another comes"
pair in_flight=64
fault server
kill_now client
await 20 server connections -eq 0
expect server left_alone_ms -le $((2 * DETECTION_MS + SLACK_MS))
expect server protocol_errors -eq 0
start client client first_id=1000000
tell client go
await 20 client ok -gt 200
expect server connections -eq 1
expect_unharmed
finish

end_test
