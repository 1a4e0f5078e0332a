#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# golden.sh check|update GENERATED...
#
# Compares generated files with tests/codegen/golden, or writes them there. After a change of the
# generator that is meant:
#
#   bazel run //tests/codegen:update_goldens
#
# and read the difference before it is committed.

set -euo pipefail

mode="$1"
shift
status=0
for generated in "$@"; do
  golden="tests/codegen/golden/${generated#tests/codegen/corpus/}"
  if [[ "$mode" == update ]]; then
    mkdir -p "$(dirname "$BUILD_WORKSPACE_DIRECTORY/$golden")"
    install -m 644 "$generated" "$BUILD_WORKSPACE_DIRECTORY/$golden"
  elif ! diff -u "$golden" "$generated"; then
    echo "$generated differs from $golden." >&2
    status=1
  fi
done
if [[ "$status" != 0 ]]; then
  echo "If that is meant: bazel run //tests/codegen:update_goldens" >&2
fi
exit "$status"
