#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_binaries.sh SECONDS NAME...: runs GoogleTest binaries in the guest, one after the other, and
# leaves for each in /out
#
#   NAME.log     its output
#   NAME.xml     GoogleTest's results, when it got that far
#   NAME.status  its exit status, or "timeout"

set -uo pipefail

# So that this script ends before the VM's time is up, which would look like the VM's failure.
MARGIN_S=5

end_s=$((SECONDS + $1 - MARGIN_S))
shift

while (($# > 0)); do
  name="$1"
  shift
  left_s=$((end_s - SECONDS))
  # One that hangs leaves time for those after it.
  (($# == 0)) || left_s=$((left_s / 2))
  ((left_s > 0)) || left_s=1
  echo "==== $name"
  # Not through a pipe: a process that is left behind would hold it open.
  timeout --kill-after=2 "$left_s" "./$name" "--gtest_output=xml:/out/$name.xml" \
    >"/out/$name.log" 2>&1
  status=$?
  cat "/out/$name.log"
  # 137: it did not end by SIGTERM.
  if ((status == 124 || status == 137)); then
    echo "==== $name: killed after $left_s s"
    status=timeout
  elif ((status != 0)); then
    echo "==== $name: exit status $status"
  fi
  echo "$status" >"/out/$name.status"
done

# What failed is in the results; the status is about having run them.
exit 0
