#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build_system_test.sh cmake|make SDK FILE...: a project of FILE builds with that program, with SDK
# copied to elsewhere, and what it builds runs.

set -euo pipefail

system="$1"
sdk="$2"
shift 2
for program in "$system" pkg-config g++ protoc flatc; do
  if ! command -v "$program" >/dev/null; then
    echo "SKIPPED: $program is not installed (tools/install_dependencies)"
    exit 0
  fi
done

project="$TEST_TMPDIR/project"
mkdir "$project"
cp -L "$@" "$project"
cp -rL "$sdk" "$TEST_TMPDIR/verbena"
chmod -R u+w "$TEST_TMPDIR/verbena"  # So that Bazel can remove it.
cd "$project"

case "$system" in
  cmake)
    cmake -B build -DCMAKE_BUILD_TYPE=Debug "-DVERBENA=$TEST_TMPDIR/verbena" .
    cmake --build build --parallel 2 --verbose
    output="$(build/greeter)"
    ;;
  make)
    make -j2 CXXFLAGS=-g "VERBENA=$TEST_TMPDIR/verbena"
    output="$(./greeter)"
    # Nothing to do the second time, and after the schema changed something.
    make -q "VERBENA=$TEST_TMPDIR/verbena"
    for schema in greeter.proto meter.fbs; do
      cp -p "$schema" before
      touch -d "next minute" "$schema"
      if make -q "VERBENA=$TEST_TMPDIR/verbena" 2>/dev/null; then
        echo "FAILED: a change of $schema is not seen" >&2
        exit 1
      fi
      touch -r before "$schema"
    done
    ;;
esac
expected=$'Hello, Ada!\n100000 bytes\n21 degrees'
if [[ "$output" != "$expected" ]]; then
  printf 'FAILED: expected: %q\n  got: %q\n' "$expected" "$output" >&2
  exit 1
fi
