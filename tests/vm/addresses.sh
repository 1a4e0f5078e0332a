#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every form of an rdma: address, with the hello example: numbers of both families, names, all
# addresses of the host; and the mistakes that people make with them. In the guest (vm_test), for
# one device.

set -uo pipefail

readonly host="$VERBENA_TEST_HOST" ipv6=fd00::1 interface=dummy0
readonly device="${VERBENA_TEST_DEVICE}0"
port=7700
failures=0
server_pid=

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

stop() {
  [[ -z "$server_pid" ]] || kill "$server_pid"
  [[ -z "$server_pid" ]] || wait "$server_pid" 2>/dev/null
  server_pid=
}
trap stop EXIT

# serve ADDRESS: false when the server does not listen; its words are in server.log.
serve() {
  stop
  ./server "$1" >server.log 2>&1 &
  server_pid=$!
  local tries
  for ((tries = 0; tries < 200; ++tries)); do
    grep -q Listening server.log && return
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  server_pid=
  return 1
}

# expect TEXT ADDRESS [NAME]: a call to that address prints TEXT, among other things, within the
# second that the client gives it and the time that starting takes.
expect() {
  local got start="$SECONDS"
  got="$(./client "${3-Ada}" "$2" 2>&1)"
  echo "$2: $got"
  [[ "$got" == *"$1"* ]] || fail "$2: no \"$1\""
  ((SECONDS - start <= 4)) || fail "$2: took $((SECONDS - start)) s"
}

# hello LISTEN TARGET: a server at one address is reached by the other.
hello() {
  port=$((port + 1))
  if serve "rdma:$1:$port"; then
    expect "Hello, Ada!" "rdma:$2:$port"
  else
    fail "no server at rdma:$1:$port: $(cat server.log)"
  fi
}

# refused TEXT LISTEN: a server does not start there, and says TEXT.
refused() {
  port=$((port + 1))
  if serve "rdma:$2:$port"; then
    fail "a server listens at rdma:$2:$port"
  else
    echo "server rdma:$2:$port: $(cat server.log)"
    grep -qF "$1" server.log || fail "server at rdma:$2:$port: no \"$1\""
  fi
}

# Nobody resolves names in the guest but this file; and all of its lines.
echo "multi on" >/etc/host.conf
printf '%s\n' "$host verbena-v4" "$ipv6 verbena-v6" "$ipv6 verbena-both" "$host verbena-both" \
  >>/etc/hosts
ip address add "$ipv6/64" dev "$interface" nodad
ping -c 1 -W 5 "$ipv6" >/dev/null || fail "$ipv6 does not answer"
# Soft-RoCE has a GID for each address; Soft-iWARP has one, and does not ask it.
if [[ "$VERBENA_TEST_DEVICE" == rxe ]]; then
  for ((tries = 0; tries < 100; ++tries)); do
    grep -qs "fd00:.*:0001$" "/sys/class/infiniband/$device/ports/1/gids/"* && break
    sleep 0.05
  done
  ((tries < 100)) || fail "$device has no GID of $ipv6"
fi

hello "$host" "$host"
hello "[$ipv6]" "[$ipv6]"
hello verbena-v4 verbena-v4
hello verbena-v6 verbena-v6
hello verbena-v4 "$host"
hello "$host" verbena-v4
# A name of two addresses, and servers that have one of them each.
hello "$host" verbena-both
hello "[$ipv6]" verbena-both
# All addresses.
hello 0.0.0.0 "$host"
hello "[::]" "[$ipv6]"
# Soft-iWARP's kernel part refuses those of the other family.
[[ "$VERBENA_TEST_DEVICE" == siw ]] || hello "[::]" "$host"

# A port of which the server does not know.
serve "rdma:$host:7790" || fail "no server: $(cat server.log)"
expect "nobody listens at this address and port" "rdma:$host:7791"
expect "nobody listens at this address and port" "rdma:[$ipv6]:7791"
expect "UNAVAILABLE" "rdma:$host:7791"
# The right one is reached after it all.
expect "Hello, Ada!" "rdma:$host:7790"
expect "INVALID_ARGUMENT: name must not be empty" "rdma:$host:7790" ""
# The client's third argument is missing a part.
expect "INVALID_ARGUMENT" "rdma:$host"
expect "INVALID_ARGUMENT" "rdma:$host:70000"
expect "INVALID_ARGUMENT" "rdma:$ipv6:7790"

# The same twice.
first_pid="$server_pid"
server_pid=
if serve "rdma:$host:7790"; then
  fail "two servers listen at one address"
else
  grep -q "ALREADY_EXISTS: somebody listens there already" server.log ||
    fail "the second server says $(cat server.log)"
fi
server_pid="$first_pid"
stop

# Names that nobody knows, and addresses that the device does not have.
expect 'the host "nobody.invalid" is not known' rdma:nobody.invalid:7790
expect "UNAVAILABLE" rdma:nobody.invalid:7790
refused 'the host "nobody.invalid" is not known' nobody.invalid
refused "no RDMA device of this host has this address" 10.9.9.9
refused "INVALID_ARGUMENT" 10.9.9.9
# The kernel would listen at all addresses.
refused "is not for this host alone" 127.0.0.1
refused "is not for this host alone" "[::1]"
expect "an RDMA device serves no loopback address" rdma:127.0.0.1:7790
expect "an RDMA device serves no loopback address" "rdma:[::1]:7790"
ip address add 10.8.0.1/24 dev lo
refused "no RDMA device of this host has this address" 10.8.0.1
expect "no RDMA device is on the way to" rdma:10.9.9.9:7790
expect "UNAVAILABLE" rdma:10.9.9.9:7790

((failures == 0)) && echo "addresses on $VERBENA_TEST_DEVICE: all as expected"
exit $((failures != 0))
