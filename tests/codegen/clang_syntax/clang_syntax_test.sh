#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang_syntax_test.sh FLAGS [--unit=FILE]... [FILE]...: clang accepts each unit, and all FILEs that
# end in .cc in one unit, without a warning. FLAGS is a file with -I flags.

set -uo pipefail

clang=clang++-16
if ! command -v "$clang" >/dev/null; then
  echo "SKIPPED: $clang is not installed (tools/install_dependencies)"
  exit 0
fi

flags="$1"
shift
units=()
all="$TEST_TMPDIR/all.cc"
for file in "$@"; do
  case "$file" in
    --unit=*) units+=("${file#--unit=}") ;;
    *.verbena.cc) echo "#include \"$file\"" >>"$all" ;;
  esac
done
[[ ! -e "$all" ]] || units+=("$all")

# check FILE: clang's messages are the log.
check() {
  "$clang" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wnon-virtual-dtor \
    -Woverloaded-virtual -Wshadow -Werror "@$flags" "$1"
}

# That it looks at the code at all.
echo 'int Narrow(long wide) { return wide; }' >"$TEST_TMPDIR/narrow.cc"
if check "$TEST_TMPDIR/narrow.cc" 2>/dev/null; then
  echo "FAILED: $clang does not see what it should see" >&2
  exit 1
fi

((${#units[@]} > 0)) || { echo "FAILED: nothing to check" >&2; exit 1; }
status=0
for unit in "${units[@]}"; do
  echo "$unit: $(grep -c '^#include' "$unit") files"
  check "$unit" || status=1
done
exit "$status"
