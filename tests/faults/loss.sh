#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A network that loses, reorders and duplicates packets: that is the NIC's business, and calls only
# take longer. Each is answered, rightly, on the connection that was there.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

# TCP, under Soft-iWARP, waits twice as long with every packet that it loses again: with one in ten
# lost for a second now and then, which by default means that the peer is gone.
options=()
[[ "$VERBENA_TEST_DEVICE" != siw* ]] || options=(detection_ms=10000)

# calls_go_on SECONDS: while packets are treated badly.
calls_go_on() {
  local before
  before="$(get client ok)"
  sleep "$1"
  say "$(($(get client ok) - before)) calls in $1 s"
  tell client stop
  await 70 client in_flight -eq 0
  no_netem
  expect client ok -gt $((before + 50))
  expect client unavailable -eq 0
  expect client connects -eq 1
  finish
}

pair "${options[@]}"
netem loss 1%
calls_go_on 8

pair "${options[@]}"
netem loss 10%
calls_go_on 8

pair "${options[@]}"
netem delay 2ms reorder 25% duplicate 3%
calls_go_on 8

end_test
