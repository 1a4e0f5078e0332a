#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A network that takes nothing for VERBENA_FAULT_SECONDS (one or several, one after the other), as
# when a switch reboots. The calls in flight end UNAVAILABLE within the detection time, or rightly
# when it is over before that; no call waits for longer than an attempt to connect; and afterwards
# the channel is well by itself.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

# bounds_of_attempts SECONDS: how many attempts to connect may fail in a partition of that length,
# least and most. Each takes CONNECT_TIMEOUT_MS, for nobody refuses, and between two the channel
# waits for half to all of 20, 40, 80 ... 5000 ms. Soft-iWARP's kernel tells no sooner either.
bounds_of_attempts() {
  awk -v length_ms="$(($1 * 1000))" -v detection_ms="$DETECTION_MS" -v slack_ms="$SLACK_MS" \
    -v timeout_ms="$CONNECT_TIMEOUT_MS" -v backoff_max_ms="$BACKOFF_MAX_MS" '
    # attempts(TIME, SHARE): those that end in it when the channel waits for that share.
    function attempts(time_ms, share, count, backoff_ms) {
      for (backoff_ms = 20; time_ms >= timeout_ms; ++count) {
        time_ms -= timeout_ms + share * backoff_ms
        backoff_ms = 2 * backoff_ms > backoff_max_ms ? backoff_max_ms : 2 * backoff_ms
      }
      return count + 0
    }
    BEGIN {
      least = attempts(length_ms - detection_ms - slack_ms, 1)
      # A quarter for what a busy machine adds to each. One more is under way when the partition
      # ends, and one may have been when it began.
      print int(least * 3 / 4), attempts(length_ms, 0.5) + 2
    }'
}

partition() {
  local least most lost
  read -r least most < <(bounds_of_attempts "$1")
  say "a partition of $1 s: expecting $least to $most failed attempts"
  lost="$(get client disconnects)"
  fault client server
  netem loss 100%
  sleep "$1"
  no_netem
  healed
  expect_recovery
  expect client last_lost_ms -le $((DETECTION_MS + SLACK_MS))
  expect client failed_attempts -ge "$least"
  expect client failed_attempts -le "$most"
  # No call waited longer than in flight and then, if it was not sent, for one attempt.
  expect client longest_failed_ms -le $((CONNECT_TIMEOUT_MS + DETECTION_MS + SLACK_MS))
  expect client longest_ok_ms -le $((CONNECT_TIMEOUT_MS + DETECTION_MS + SLACK_MS))
  if (("$1" * 1000 > DETECTION_MS + SLACK_MS)); then
    expect client disconnects -ge $((lost + 1))
    expect server left_alone_ms -ge 0
    expect server left_alone_ms -le $((2 * DETECTION_MS + SLACK_MS))
  fi
  show client
  show server
  await 20 client ok -gt $(($(get client ok) + 200))
}

pair
for seconds in $VERBENA_FAULT_SECONDS; do partition "$seconds"; done
finish
end_test
