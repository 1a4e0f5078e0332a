#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a vm_test runs on the host: see vm_test.bzl, which writes the arguments:
#
#   --device=NAME --memory=MIB --env=NAME=VALUE... --allow-complaints   as of tools/vm/run
#   --script=FILE  --data=FILE...  --binary=FILE...                     relative to the runfiles

set -euo pipefail

# The VM's own part of the test's time: booting, and giving up when the guest hangs (GRACE_S in
# tools/vm/lib/qemu.sh, and some for copying).
VM_TIME_S=60

vm_options=() script="" data=() binaries=() device=""
for argument in "$@"; do
  case "$argument" in
    --device=*)
      device="${argument#*=}"
      vm_options+=("$argument")
      ;;
    --memory=* | --env=* | --allow-complaints) vm_options+=("$argument") ;;
    --script=*) script="${argument#*=}" ;;
    --data=*) data+=("${argument#*=}") ;;
    --binary=*) binaries+=("${argument#*=}") ;;
    *)
      echo "vm_test.sh: unknown argument '$argument'" >&2
      exit 2
      ;;
  esac
done

# What Bazel and .bazelrc want the programs to see. TESTBRIDGE_TEST_ONLY is --test_filter.
for name in ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS TESTBRIDGE_TEST_ONLY; do
  [[ -z "${!name:-}" ]] || vm_options+=("--env=$name=${!name}")
done

source tests/vm/require_vm.sh
require_vm --device="$device"

test_folder="$TEST_TMPDIR/test"
out="$TEST_TMPDIR/out"
mkdir -p "$test_folder" "$out"
for file in "${data[@]}" "${binaries[@]}" ${script:+"$script"}; do
  # Beside each other by their names, so there can be only one of each.
  ln -s "$PWD/$file" "$test_folder/${file##*/}"
done

time_s=$((TEST_TIMEOUT - VM_TIME_S))
if [[ -n "$script" ]]; then
  command=(bash "./${script##*/}")
else
  ln -s "$PWD/tests/vm/run_binaries.sh" "$test_folder/"
  command=(bash ./run_binaries.sh "$time_s" "${binaries[@]##*/}")
fi

status=0
tools/vm/run "${vm_options[@]}" --binaries="$test_folder" --out="$out" --timeout="$time_s" \
  --log="$TEST_TMPDIR/console" -- "${command[@]}" || status=$?
[[ ! -e "$out/figures.txt" ]] || cp "$out/figures.txt" "$TEST_UNDECLARED_OUTPUTS_DIR/"

if [[ -z "$script" ]]; then
  python3 tools/lib/merge_vm_results.py --device="$device" --vm-status="$status" --results="$out" \
    --output="$XML_OUTPUT_FILE" "${binaries[@]##*/}" || status=1
fi
exit "$status"
