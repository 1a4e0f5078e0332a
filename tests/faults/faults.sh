# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the scripts of the fault tests, which run in a VM on a pair of devices (or one of two VMs):
# starts servers and clients (fault_trial), breaks what is between them, and judges what they note.
# Sourced; a script ends with end_test.

set -uo pipefail

# What detection_time's promise may be exceeded by: programs, kernel and both NICs share two
# emulated CPUs, whose host may be busy, and each step of a detection is a thread or a softirq that
# has to come by. Without the endpoint's own watch nothing ends before many seconds (Soft-iWARP:
# TCP's retransmissions) or ever (Soft-RoCE), so that a watch that does not work is found all the
# same.
SLACK_MS=2000
DETECTION_MS=1000       # EndpointOptions::detection_time, by default.
CONNECT_TIMEOUT_MS=2000 # ChannelOptions::connect_timeout, likewise.
BACKOFF_MAX_MS=5000     # ChannelOptions::reconnect_backoff_max.

test_folder="$PWD"
work="$(mktemp -d)"
failures=0
declare -A pids=()
port=7000

say() { printf '%s ---- %s\n' "${EPOCHREALTIME%???}" "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

end_test() {
  local name
  for name in "${!pids[@]}"; do kill -KILL "${pids[$name]}"; done
  rm -rf "$work"
  ((failures == 0)) && say "passed" && exit 0
  say "$failures failures"
  exit 1
}

# ---- Programs ----

# The device of a pair that has $VERBENA_TEST_HOST.
server_device="${VERBENA_TEST_DEVICE%pair}2"

# start ROLE NAME [OPTION=VALUE...]: at $target. A name may be used again when its process is gone.
start() {
  local role="$1" name="$2"
  shift 2
  : >"$work/$name.commands"
  rm -f "$work/$name.status"
  "$test_folder/fault_trial" "$role" "$target" "$work/$name" "$@" &
  pids[$name]=$!
  say "$name starts: $role $target $*"
  await 20 "$name" ended -lt 1
}

# tell NAME COMMAND [TIME]
tell() { printf '%s\n' "${*:2}" >>"$work/$1.commands"; }

# get NAME KEY: the value in the newest status; nothing when there is none.
get() {
  local key value
  [[ -e "$work/$1.status" ]] || return 0
  while read -r key value; do
    [[ "$key" != "$2" ]] || printf '%s' "$value"
  done <"$work/$1.status"
}

# holds NAME KEY OPERATOR VALUE: whether the number is as `test` says.
holds() {
  local value
  value="$(get "$1" "$2")"
  [[ -n "$value" ]] && test "$value" "$3" "$4"
}

# await SECONDS NAME KEY OPERATOR VALUE: ends the test when the time is over.
await() {
  local end=$((SECONDS + $1 + 1))
  until holds "${@:2}"; do
    if ((SECONDS >= end)); then
      fail "after $1 s not yet: $2: $3 ${*:4}, but $(get "$2" "$3")"
      show "$2"
      end_test
    fi
    sleep 0.05
  done
}

# expect NAME KEY OPERATOR VALUE
expect() { holds "$@" || fail "expected $1: $2 ${*:3}, but it is '$(get "$1" "$2")'"; }

# show NAME: its status, in a line.
show() {
  local key value line=""
  [[ -e "$work/$1.status" ]] || return 0
  while read -r key value; do line+=" $key=${value// /,}"; done <"$work/$1.status"
  say "$1:$line"
}

# kill_now NAME: SIGKILL, and waits until it is gone.
kill_now() {
  kill -KILL "${pids[$1]}"
  wait "${pids[$1]}" 2>/dev/null
  unset "pids[$1]"
}

# reap NAME: it has been told to end.
reap() {
  local tries status=0
  for ((tries = 0; tries < 400; ++tries)); do
    [[ -e "/proc/${pids[$1]}" ]] || break
    sleep 0.05
  done
  ((tries < 400)) || { fail "$1 does not end" && kill -KILL "${pids[$1]}"; }
  wait "${pids[$1]}" || status=$?
  ((status == 0)) || fail "$1 ended with status $status"
  unset "pids[$1]"
}

# pair [OPTION=VALUE...]: a server and a client with calls in flight, at a new port.
pair() {
  target="rdma:$VERBENA_TEST_HOST:$((++port))"
  rm -f "$work/server.executions"
  start server server device="$server_device" "$@"
  start client client "$@"
  tell client go
  await 20 client ok -gt 200
}

# finish: ends client and server, and looks at what holds in every scenario: each call has ended, in
# one of the two ways that a fault leaves, and was executed once at the most.
finish() {
  tell client stop
  await 70 client in_flight -eq 0
  end_server
  await 10 client connects -eq "$(get client disconnects)"
  end_client
}

end_server() {
  tell server end
  await 20 server ended -eq 1
  show server
  expect server connections -eq 0
  expect server executed_twice -eq 0
  expect server wrong_questions -eq 0
  expect server protocol_errors -eq 0
  expect server receiver_not_ready -eq 0
  reap server
}

end_client() {
  show client
  expect client in_flight -eq 0
  expect client deadline_exceeded -eq 0
  expect client other_failures -eq 0
  expect client wrong_answers -eq 0
  expect client receiver_not_ready -eq 0
  tell client end
  reap client
}

# ---- Faults ----

# netem ARGUMENT...: what happens to packets on both ends of the link, tc-netem(8).
netem() {
  say "netem $*"
  local interface
  for interface in va vb; do tc qdisc replace dev "$interface" root netem "$@"; done
}

no_netem() {
  local interface
  for interface in va vb; do tc qdisc del dev "$interface" root; done
}

# fault NAME...: tells them that it begins. Before it does: some of the time is the command's own.
fault() {
  local name time="$EPOCHREALTIME"
  for name in "$@"; do tell "$name" fault "$time"; done
}

# healed: tells the client that nothing is in its way any more.
healed() { tell client healed "$EPOCHREALTIME"; }

# expect_lost_in_time: the calls that end with their connection, of which there are some.
expect_lost_in_time() {
  await 60 client last_lost_ms -ge 0
  expect client last_lost_ms -le $((DETECTION_MS + SLACK_MS))
}

# expect_unharmed: no call of the client has failed.
expect_unharmed() { expect client unavailable -eq 0; }

# expect_recovery: once nothing is in the way, an attempt that cannot succeed any more may be under
# way still, and the longest time of waiting follows.
expect_recovery() {
  await 60 client recovered_ms -ge 0
  expect client recovered_ms -le $((CONNECT_TIMEOUT_MS + BACKOFF_MAX_MS + SLACK_MS))
}
