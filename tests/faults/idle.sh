#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network between a client and a server that say nothing to each other goes away: the server
# notices, so that connections of hosts that are no more do not pile up, and so does the client.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

pair
tell client stop
await 20 client in_flight -eq 0
sleep 1
fault client server
netem loss 100%
await 20 server connections -eq 0
await 20 client disconnects -eq 1
show server
expect server left_alone_ms -ge 0
expect server left_alone_ms -le $((2 * DETECTION_MS + SLACK_MS))
expect server peers_lost -eq 1
expect client peers_lost -eq 1
no_netem
healed
tell client go
expect_recovery
expect_unharmed
expect client connects -eq 2
finish

end_test
