#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# flatbuffers_test.sh SERVER CLIENT: what README.md says happens, happens.

set -uo pipefail

address="shm:meter-test-$$"
"$1" "$address" >server.log &
server=$!
trap 'kill "$server"' EXIT
until grep --quiet Listening server.log; do
  kill -0 "$server" || exit 1
  sleep 0.05
done

client="$2"
source tests/support/expect.sh

expect_equal "readings in a slot" \
  $'Hello, station 7!\n100 readings, 24.5 degrees; 0 bytes were copied' \
  "$("$client" 100 "$address" 2>&1)"
expect_equal "readings that go by RDMA WRITE" \
  $'Hello, station 7!\n1000000 readings, 24.5 degrees; 0 bytes were copied' \
  "$("$client" 1000000 "$address" 2>&1)"
expect_equal "an error of the handler" \
  $'Hello, station 7!\nINVALID_ARGUMENT: no readings' \
  "$("$client" 0 "$address" 2>&1)"
[[ "$failures" == 0 ]]
