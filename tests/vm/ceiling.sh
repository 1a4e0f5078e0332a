#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the VM's RDMA device itself can do, by perftest: to judge figures of ours from the same VM by.
# In the guest (vm_test), for one device that talks to itself.

set -euo pipefail

# -R: connected by rdma_cm, as ours are. -F: the CPU's frequency is no matter here.
options=(-R -F)

# wait_for_listener PID: until that process listens by rdma_cm; 30 s at most.
wait_for_listener() {
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    ! rdma resource show cm_id | grep -q "state LISTEN .*pid $1 " || return 0
    sleep 0.1
  done
  echo "no listener" >&2
  cat server.log >&2
}

# perftest COLUMN PROGRAM OPTION...: the figure in that column of the program's only row.
perftest() {
  local column="$1" program="$2"
  shift 2
  "$program" "${options[@]}" "$@" >server.log 2>&1 &
  local server_pid=$!
  wait_for_listener "$server_pid"
  # Without the client's end the server would wait for ever.
  "$program" "${options[@]}" "$@" "$VERBENA_TEST_HOST" >client.log 2>&1 || kill "$server_pid"
  cat client.log >&2
  wait "$server_pid"
  awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= column { print $column; exit }' client.log
}

# figure NAME UNIT VALUE
figure() {
  [[ "$3" =~ ^[0-9.]+$ ]]  # Else there was no such row, and this ends the test.
  printf '%-34s %10s %s\n' "$1" "$3" "$2" | tee -a /out/figures.txt
}

# Columns: the fifth of a latency test is the median, the fourth of a bandwidth test the average.
figure "SEND of 64 bytes, one way" us "$(perftest 5 ib_send_lat -s 64 -n 2000)"
figure "WRITE of 64 bytes, one way" us "$(perftest 5 ib_write_lat -s 64 -n 2000)"
figure "WRITE of 1 MiB" MiB/s "$(perftest 4 ib_write_bw -s 1048576 -n 200)"
