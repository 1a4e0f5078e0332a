#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bulk_transfer_test.sh RECEIVER SENDER TCP: what README.md says happens, with less memory.

set -uo pipefail

address="shm:bulk-transfer-test-$$"
servers=()
trap 'kill "${servers[@]}"' EXIT

# listen LOG COMMAND...: starts a server and waits until it listens.
listen() {
  local log=$1
  shift
  "$@" >"$log" &
  servers+=($!)
  until grep --quiet Listening "$log"; do
    kill -0 "$!" || exit 1
    sleep 0.05
  done
}

failures=0
# expect PATTERN TEXT
expect() {
  if ! grep --quiet --extended-regexp "$1" <<<"$2"; then
    printf 'FAILED: expected "%s" in:\n%s\n' "$1" "$2" >&2
    failures=$((failures + 1))
  fi
}

listen receiver.log "$1" "$address"
output=$("$2" "$address" 64 3 2>progress.log) || failures=$((failures + 1))
expect '^3: +[0-9.]+ GiB/s +[0-9.]+ CPU seconds per GiB' "$(tr '\r' '\n' <<<"$output")"
expect '^copied by Verbena: 0 bytes$' "$output"
expect '[0-9]+ %' "$(cat progress.log)"

listen tcp.log "$3" receive 0
port=$(sed -n 's/.* port \([0-9]*\)\..*/\1/p' tcp.log)
output=$("$3" send "$port" 64 3 2>/dev/null) || failures=$((failures + 1))
expect '^3: +[0-9.]+ GiB/s' "$(tr '\r' '\n' <<<"$output")"
[[ "$failures" == 0 ]]
