# SPDX-License-Identifier: Apache-2.0
#
# For tests in shell, which source this from where Bazel starts them, and end with
# [[ "$failures" == 0 ]].

failures=0

expect_equal() {
  if [[ "$2" != "$3" ]]; then
    printf 'FAILED: %s\n  expected: %q\n  got:      %q\n' "$1" "$2" "$3" >&2
    failures=$((failures + 1))
  fi
}

# expect_text WHAT TEXT FILE: FILE contains TEXT.
expect_text() {
  if ! grep --quiet --fixed-strings -- "$2" "$3"; then
    printf 'FAILED: %s\n  expected: %s\n  got:\n' "$1" "$2" >&2
    cat "$3" >&2
    failures=$((failures + 1))
  fi
}
