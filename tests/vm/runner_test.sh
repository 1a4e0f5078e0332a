#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a vm_test makes of programs that end in every way: vm_test.sh itself, run as Bazel would, on
# scripts that behave like GoogleTest binaries.

set -uo pipefail

source tests/support/expect.sh
source tests/vm/require_vm.sh
require_vm

work="$TEST_TMPDIR"

# count TEXT FILE: how often TEXT is in FILE.
count() { grep -oF -- "$1" "$2" | wc -l; }

# program NAME BODY: a file that tests see as NAME, below the folder that stands for the runfiles.
program() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/runfiles/$1"
  chmod +x "$work/runfiles/$1"
}

# vm_test NAME SECONDS ARGUMENT...: its log and results are in $work/NAME, its status in $status.
vm_test() {
  local folder="$work/$1" seconds="$2"
  shift 2
  mkdir -p "$folder"/{tmp,outputs}
  status=0
  (cd "$work/runfiles" && env TEST_TMPDIR="$folder/tmp" TEST_TIMEOUT="$seconds" \
    TEST_UNDECLARED_OUTPUTS_DIR="$folder/outputs" XML_OUTPUT_FILE="$folder/test.xml" \
    tests/vm/vm_test.sh --device=none "$@") >"$folder/log" 2>&1 || status=$?
  sed 's/^/    | /' "$folder/log"
}

mkdir "$work/runfiles"
ln -s "$PWD/tests" "$PWD/tools" "$work/runfiles/"

# GoogleTest's result file of one case; $1 is --gtest_output=xml:FILE.
one_case='echo "<testsuites><testsuite name=\"Suite\"><testcase name=\"Case\" classname=\"Suite\"
  status=\"run\"/></testsuite></testsuites>" >"${1#--gtest_output=xml:}"'
program good "$one_case"
program leaks "$one_case; exit 23"
program crashes 'echo "[ RUN      ] Suite.Crashes"; kill -SEGV $$'
program hangs 'echo "[ RUN      ] Suite.Hangs"; sleep 1000'
program complains "$one_case; echo 'WARNING: of the kernel' >/dev/kmsg"

# 60 s of the time are the VM's, 20 s are for the programs.
vm_test endings 80 --binary=crashes --binary=hangs --binary=leaks --binary=complains --binary=good
expect_equal "programs that fail" 1 "$status"
xml="$work/endings/test.xml"
expect_equal "cases that pass" 3 "$(count 'name="Case" classname="none.Suite"' "$xml")"
expect_equal "failures" 4 "$(count '<failure' "$xml")"
expect_text "a crash" 'message="killed by SIGSEGV in Suite.Crashes"' "$xml"
expect_text "a hang" 'message="took too long in Suite.Hangs"' "$xml"
expect_text "a leak" 'message="exit status 23, although no case failed"' "$xml"
expect_text "the kernel's complaint" 'message="the VM failed or its kernel complains' "$xml"
expect_text "the complaint itself" 'WARNING: of the kernel' "$work/endings/log"

vm_test success 80 --binary=good --env=A=b
expect_equal "programs that succeed" 0 "$status"
expect_equal "no failure" 0 "$(count '<failure' "$work/success/test.xml")"

program script.sh 'echo "$VALUE of $(cat data.txt)" >/out/figures.txt; ./good --gtest_output=xml:/out/x; exit 9'
program data.txt 'data'
vm_test script 80 --env=VALUE=value --script=script.sh --data=data.txt --binary=good
expect_equal "a script that fails" 9 "$status"
expect_text "a script's figures" "value of" "$work/script/outputs/figures.txt"

VERBENA_VM_CACHE=/dev/null/cache vm_test skipped 80 --binary=good
expect_equal "without a VM" 0 "$status"
expect_text "without a VM" "SKIPPED: no VM here: cannot write the cache folder" "$work/skipped/log"

[[ "$failures" == 0 ]]
