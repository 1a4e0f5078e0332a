# SPDX-License-Identifier: Apache-2.0
#
# For tests that run VMs, which source this from where Bazel starts them.

# require_vm ARGUMENT...: as tools/vm/prepare; ends the test as skipped, with the reason, where no VM
# is to be had, and as failed when that cannot be told.
require_vm() {
  local log status=0
  log="$(tools/vm/prepare "$@" 2>&1)" || status=$?
  if ((status == 3)); then
    echo "SKIPPED: no VM here: $(tail -n 1 <<<"$log" | sed 's/^vm: //')"
    exit 0
  elif ((status != 0)); then
    echo "$log"
    exit 1
  fi
}
