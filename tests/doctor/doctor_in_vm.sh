#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# doctor on real verbs: rxe or siw, in a virtual machine that belongs to this test alone, because it
# takes the device apart piece by piece and expects the right diagnosis for each.
#
# usage: VERBENA_TEST_DEVICE=rxe|siw doctor_in_vm.sh
#
# Runs ./doctor as root. One device, rxe0 or siw0, on dummy0 with address 10.1.0.1 and MTU 9000.

set -uo pipefail

device="${VERBENA_TEST_DEVICE:?set VERBENA_TEST_DEVICE to rxe or siw}"
name="${device}0"
failures=0

fail() {
  echo "FAILED: $1"
  printf '%s\n' "$output" | sed 's/^/    /'
  failures=$((failures + 1))
}

# One line with single spaces, so that where doctor breaks lines does not matter.
flatten() { flat="$(tr -s ' \n' ' ' <<<"$output")"; }

# diagnose EXIT_CODE ARGUMENT...
diagnose() {
  local expected="$1" status=0
  shift
  output="$(./doctor "$@" 2>&1)" || status=$?
  flatten
  [[ "$status" == "$expected" ]] || fail "exit code $status, not $expected"
}

has() { [[ "$flat" == *"$1"* ]] || fail "no \"$1\""; }
has_not() { [[ "$flat" != *"$1"* ]] || fail "there is \"$1\""; }

# All in order.
diagnose 0
has "RDMA is usable: $name (1 of 1 device)."
has "$name usable by 10.1.0.1"
has "ACTIVE (LinkUp)"
has "MTU 4096 of 4096, on dummy0 (MTU 9000)"
has "10.1.0.1 (dummy0) -> $name"
has "rdma_cm ok, uverbs0 ok"
has "RDMA devices are shared between network namespaces"
has "says trouble"
has "[note] $name: The kernel plays this NIC in software"
has_not "[blocks]"
has_not "mtu_low"
has_not "relaxed ordering is off"
case "$device" in
  rxe)
    has "RoCE, Ethernet"
    has "::ffff:10.1.0.1, RoCE v2, IPv4 address of dummy0. Used: an address goes before a link-local one"
    has "can reliable connection, write with immediate, send with invalidate, atomics, memory windows type 2"
    has "512 bytes inline"
    has_not "no write with immediate"
    ;;
  siw)
    has "iWARP, Ethernet"
    has "iWARP connects by IP address"
    has "write with immediate (iWARP has no such operation)"
    has "atomics (device reports none)"
    has "80 bytes inline"
    has "[note] $name: The device has no write with immediate data"
    ;;
esac

diagnose 0 --json
has '"usable": true, "reason": "usable"'
has "\"name\": \"$name\""
has '"fork": "unneeded"'
[[ "$device" == rxe ]] && has '"write_with_imm": { "supported": true'
[[ "$device" == siw ]] && has '"write_with_imm": { "supported": false'

# The only address is not of this family.
diagnose 1 --family=ipv6 --json
has '"reason": "no_address"'

if [[ "$device" == rxe ]]; then
  ip link set dummy0 mtu 1500
  diagnose 0
  has "[slow] rxe0 port 1: RDMA packets carry 1024 bytes and could carry 4096: the MTU of dummy0 is 1500"
  ip link set dummy0 mtu 9000
fi

ip address flush dev dummy0 scope global
diagnose 1 --json
has '"reason": "no_address"'
ip address add 10.1.0.1/24 dev dummy0

# A network namespace without the net device. siw's GID does not name it.
ip netns add elsewhere
output="$(ip netns exec elsewhere ./doctor --json 2>&1)"
flatten
[[ "$device" == rxe ]] && has '"reason": "other_namespace"'
[[ "$device" == siw ]] && has '"reason": "no_address"'
ip netns del elsewhere

# A user without rights, then with rights and little locked memory.
chmod 0755 / .
echo 'user:x:1000:1000::/tmp:/bin/bash' >>/etc/passwd
as_user() {
  output="$(su -s /bin/bash user -c "ulimit -l $1; ./doctor" 2>&1)"
  flatten
}
chmod 0600 /dev/infiniband/uverbs0
as_user 8192
has "RDMA is not usable: $name: /dev/infiniband/uverbs0: Permission denied."
chmod 0666 /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm
as_user 8192
has "RDMA is usable: $name"
has "Locked memory is limited to 8 MiB: 14 connections"
as_user 64
has "RDMA is not usable: $name: the limit of locked memory, 65536 bytes, is below the 582400 of one"

ip link set dummy0 down
diagnose 1 --json
has '"reason": "port_down"'
ip link set dummy0 up

mv /dev/infiniband/rdma_cm /dev/infiniband/hidden
diagnose 1
has "RDMA is not usable: $name: /dev/infiniband/rdma_cm is missing."
has "do: modprobe rdma_ucm"
mv /dev/infiniband/hidden /dev/infiniband/rdma_cm

mv /dev/infiniband /dev/hidden
diagnose 1
has "RDMA is not usable: $name: /dev/infiniband is missing."
has "docker run --device=/dev/infiniband"
mv /dev/hidden /dev/infiniband

rdma link delete "$name"
diagnose 1 --json
has '"reason": "no_device"'

((failures == 0)) && echo "doctor on $device: all as expected"
exit $((failures != 0))
