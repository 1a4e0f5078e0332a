#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tools/vm/run promises: exit statuses, output, files, and that nothing stays behind.

set -uo pipefail

source tests/support/expect.sh
source tests/vm/require_vm.sh
require_vm

work="$TEST_TMPDIR/harness"
mkdir "$work"
export TMPDIR="$TEST_TMPDIR/tmp"  # Where tools/vm/run makes its folder.
mkdir "$TMPDIR"

# vm ARGUMENT...: its exit status is in $status, its streams in $work/{out,err}.
vm() {
  echo "---- tools/vm/run $*"
  status=0
  tools/vm/run "$@" >"$work/out" 2>"$work/err" || status=$?
}

# Everything that comes back from a command that is well, in one machine.
bytes=$' leading, trailing \t "quotes" \'and\' \\backslash $HOME `x` * \r\u00e9\xff\x01'
mkdir "$work/shared"
vm --device=none --out="$work/shared" --env="TEXT=$bytes" --env=EMPTY= -- bash -c '
  printf "%s" "$1" >/out/argument
  printf "%s" "$TEXT" >/out/environment
  printf "[%s]" "$PWD" "${EMPTY-unset}" "$(ulimit -l)" "$VERBENA_TEST_DEVICE"
  printf "to stderr" >/dev/stderr
  printf "\0no newline at the end"' bash $'two\nlines'"$bytes"
expect_equal "a command that succeeds" 0 "$status"
expect_equal "an argument" $'two\nlines'"$bytes" "$(<"$work/shared/argument")"
expect_equal "an environment variable" "$bytes" "$(<"$work/shared/environment")"
expect_equal "the output, as bytes" \
  "$(printf '[/test][][unlimited][none]to stderr\0no newline at the end' | od -c)" \
  "$(od -c "$work/out")"
expect_equal "nothing else is said" "" "$(<"$work/err")"

vm --device=none -- bash -c 'exit 7'
expect_equal "a command's exit status" 7 "$status"

vm --device=none -- bash -c 'kill -SEGV $$'
expect_equal "a command that a signal ends" 139 "$status"

vm --device=none --timeout=2 -- bash -c 'echo begun; sleep 1000'
expect_equal "a command that takes too long" 124 "$status"
expect_equal "its output until then" "begun" "$(<"$work/out")"
expect_text "what it was doing" "sleep 1000" "$work/err"

vm --device=none -- bash -c 'echo c >/proc/sysrq-trigger'
expect_equal "a kernel that crashes" 125 "$status"
expect_text "what it says" "Kernel panic" "$work/err"

vm --device=none -- bash -c 'echo "WARNING: of the kernel" >/dev/kmsg'
expect_equal "a kernel that complains" 125 "$status"
expect_text "what it says" "WARNING: of the kernel" "$work/err"

vm --device=none --allow-complaints -- bash -c 'echo "WARNING: of the kernel" >/dev/kmsg'
expect_equal "a kernel that may complain" 0 "$status"

vm --device=rdma -- true
expect_equal "an unknown device" 126 "$status"
expect_text "the known ones" "rxe siw rxepair siwpair none" "$work/err"

vm --device=none
expect_equal "no command" 126 "$status"

VERBENA_VM_CACHE=/dev/null/cache vm -- true
expect_equal "a machine that cannot have the VM" 126 "$status"
expect_text "why not" "cannot write the cache folder" "$work/err"

# Two machines. In /tmp, because the path of a Unix socket is 107 bytes at most.
network="$(mktemp -d /tmp/verbena-vm-test.XXXXXX)"
tools/vm/run --net=listen:"$network/socket" --address=10.2.0.1/24 --out="$work/shared" -- \
  bash -c 'until [[ -e /out/done ]]; do sleep 0.1; done' &
first_pid=$!
vm --net=connect:"$network/socket" --address=10.2.0.2/24 --wait=10.2.0.1 --out="$work/shared" -- \
  bash -c 'ping -c 1 10.2.0.1 >/dev/null; echo "$? $VERBENA_TEST_HOST"; touch /out/done'
expect_equal "a machine that reaches another" "0 10.2.0.2" "$(<"$work/out")"
wait "$first_pid"
expect_equal "the other machine" 0 $?
expect_equal "the socket is gone" "" "$(ls -A "$network")"
rmdir "$network"

# processes: those of a run that shares this folder with its guest.
processes() { grep -alF -- "path=$work/shared" /proc/[0-9]*/cmdline 2>/dev/null; }

tools/vm/run --device=none --out="$work/shared" -- bash -c 'echo begun; sleep 1000' >"$work/out" &
run_pid=$!
for ((tries = 0; tries < 300; ++tries)); do
  [[ -s "$work/out" ]] && break
  sleep 0.1
done
expect_text "QEMU runs" /proc/ <(processes)
kill "$run_pid"
wait "$run_pid"
expect_equal "a run that is stopped" 143 $?
expect_equal "its processes are gone" "" "$(processes)"
expect_equal "no temporary file is left" "" "$(ls -A "$TMPDIR")"

[[ "$failures" == 0 ]]
