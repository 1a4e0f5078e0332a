#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A server in one VM, a client in another, and a network between them that loses packets.

set -uo pipefail

source tests/vm/require_vm.sh
require_vm

export TMPDIR="$TEST_TMPDIR/tmp"  # Where tools/vm/run makes its folder.
programs="$TEST_TMPDIR/programs"
shared="$TEST_TMPDIR/shared"
mkdir "$TMPDIR" "$programs" "$shared"
ln -s "$PWD"/tests/faults/{fault_trial,faults.sh,machine.sh} "$programs/"
# In /tmp, because the path of a Unix socket is 107 bytes at most.
network="$(mktemp -d /tmp/verbena-vm-test.XXXXXX)"

# machine ROLE OPTION...: of the two.
machine() {
  tools/vm/run --device=rxe --binaries="$programs" --out="$shared" --timeout=150 \
    "${@:2}" -- bash ./machine.sh "$1"
}

machine server --net=listen:"$network/socket" --address=10.2.0.1/24 >"$TEST_TMPDIR/server" 2>&1 &
server_pid=$!
client_status=0
machine client --net=connect:"$network/socket" --address=10.2.0.2/24 --wait=10.2.0.1 ||
  client_status=$?
server_status=0
wait "$server_pid" || server_status=$?
echo "---- the server's machine:"
cat "$TEST_TMPDIR/server"
rm -rf "$network"
echo "client's machine: $client_status, server's machine: $server_status"
[[ "$client_status $server_status" == "0 0" ]]
