#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hello_test.sh SERVER CLIENT: what README.md says happens, happens.

set -uo pipefail

address="shm:hello-test-$$"
"$1" "$address" >server.log &
server=$!
trap 'kill "$server"' EXIT
until grep --quiet Listening server.log; do
  kill -0 "$server" || exit 1
  sleep 0.05
done

client="$2"
failures=0
# expect TEXT NAME: the client called with NAME prints TEXT.
expect() {
  local got
  got="$("$client" "$2" "$address" 2>&1)"
  if [[ "$got" != "$1" ]]; then
    printf 'FAILED: client "%s": expected "%s", got "%s"\n' "$2" "$1" "$got" >&2
    failures=$((failures + 1))
  fi
}

expect "Hello, Ada!" "Ada"
expect "INVALID_ARGUMENT: name must not be empty" ""
[[ "$failures" == 0 ]]
