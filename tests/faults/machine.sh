#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# machine.sh server|client: one of the two machines of two_machines_test.sh. They tell each other by
# files in /out that the host shares with both.

# shellcheck source=tests/faults/faults.sh
source ./faults.sh

target=rdma:10.2.0.1:7000

# await_file NAME: what the other machine makes; not for ever, as it may have failed.
await_file() {
  local tries
  for ((tries = 0; tries < 1000; ++tries)); do
    [[ ! -e "/out/$1" ]] || return 0
    sleep 0.1
  done
  fail "the other machine made no $1"
  end_test
}

serve() {
  start server server
  touch /out/serving
  await_file called
  end_server
}

# calls_go_on SECONDS: none fails.
calls_go_on() {
  local before
  before="$(get client ok)"
  sleep "$1"
  say "$(($(get client ok) - before)) calls in $1 s"
  expect client ok -gt $((before + 50))
  expect client unavailable -eq 0
}

call() {
  await_file serving
  start client client
  tell client go
  await 20 client ok -gt 200
  calls_go_on 4
  local loss
  for loss in 1% 10%; do
    # Of what this machine sends.
    say "loss of $loss"
    tc qdisc replace dev eth0 root netem loss "$loss"
    calls_go_on 6
  done
  tell client stop
  await 70 client in_flight -eq 0
  tc qdisc del dev eth0 root
  expect client connects -eq 1
  touch /out/called
  await 60 client disconnects -eq 1
  end_client
}

case "$1" in
  server) serve ;;
  client) call ;;
esac
end_test
