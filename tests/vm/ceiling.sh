#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the VM's RDMA device itself can do, by perftest: to judge figures of ours from the same VM by.
# In the guest (vm_test), for one device that talks to itself.

set -euo pipefail

# -R: connected by rdma_cm, which is all that siw has. -F: the CPU's frequency is no matter here.
options=(-R -F)

# perftest COLUMN PROGRAM OPTION...: the figure in that column of the program's only row.
perftest() {
  local column="$1" program="$2"
  shift 2
  "$program" "${options[@]}" "$@" >server.log 2>&1 &
  sleep 0.5  # Until it listens.
  "$program" "${options[@]}" "$@" "$VERBENA_TEST_HOST" | tee client.log >&2
  wait "$!"
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
