#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What an echo costs over the VM's RDMA device, beside perftest's SEND and UCX's active messages in
# the same VM: three rounds of all, interleaved, since the machine under the VM changes; medians.
# In the guest (vm_test), for one device that talks to itself.

set -euo pipefail

readonly rounds=3
readonly port_first=7600
export UCX_TLS=rc_v UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=1 UCX_LOG_LEVEL=fatal
# With an IPv4 GID UCX else drops its own address messages and waits for ever.
export UCX_UD_VERBS_ETH_DGID_CHECK=n

# wait_until COMMAND...: 30 s at most.
wait_until() {
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    ! "$@" || return 0
    sleep 0.1
  done
  echo "waited in vain for: $*" >&2
  cat server.log >&2
  return 1
}
listens() { rdma resource show cm_id | grep -q "state LISTEN .*pid $1 "; }

# perftest COLUMN PROGRAM OPTION...: the figure in that column of the program's only row.
perftest() {
  local column="$1" program="$2"
  shift 2
  # -R: connected by rdma_cm, as ours are. -F: the CPU's frequency is no matter here.
  "$program" -R -F "$@" >server.log 2>&1 &
  local server_pid=$!
  wait_until listens "$server_pid"
  timeout 60 "$program" -R -F "$@" "$VERBENA_TEST_HOST" >client.log 2>&1 || kill "$server_pid"
  wait "$server_pid"
  awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= column { print $column; exit }' client.log
}

# ucx OPTION...: the median one-way latency of a UCP active message test, us.
ucx() {
  timeout 60 ucx_perftest "$@" >server.log 2>&1 &
  local server_pid=$!
  sleep 1  # It listens on TCP; the client does not try again.
  timeout 60 ucx_perftest 127.0.0.1 "$@" >client.log 2>&1 || kill "$server_pid"
  wait "$server_pid" || true  # The first one to notice the other's end complains.
  awk '/^Final:/ { print $3 }' client.log
}

# echo_p50 PORT OPTION...: the median round trip of rpc_bench, us.
echo_p50() {
  local port="$1"
  shift
  local address="rdma:$VERBENA_TEST_HOST:$port"
  ./rpc_bench serve --listen="$address" --cpu=0 "$@" >server.log 2>&1 &
  local server_pid=$!
  wait_until grep -q "rpc_bench serves" server.log
  timeout 60 ./rpc_bench run --target="$address" --cpu=1 --seconds=3 --json "$@" >client.log
  kill "$server_pid"
  wait "$server_pid" || true
  sed -n 's/.*"p50": *\([0-9.]*\).*/\1/p' client.log | head -1
}

# upload_mib PORT: bytes per second of 1 MiB uploads with 8 calls in flight, in MiB/s.
upload_mib() {
  local address="rdma:$VERBENA_TEST_HOST:$1"
  ./rpc_bench serve --listen="$address" --cpu=0 >server.log 2>&1 &
  local server_pid=$!
  wait_until grep -q "rpc_bench serves" server.log
  timeout 60 ./rpc_bench run --target="$address" --cpu=1 --seconds=3 --mode=upload --size=1M \
    --concurrency=8 --json >client.log
  kill "$server_pid"
  wait "$server_pid" || true
  sed -n 's/.*"bytes_per_second": *\([0-9.]*\).*/\1/p' client.log | tail -1 |
    awk '{ printf "%.1f", $1 / 1048576 }'
}

receiver_not_ready() {
  cat /sys/class/infiniband/rxe0/ports/1/hw_counters/{rcvd_rnr_err,send_rnr_err} |
    awk '{ sum += $1 } END { print sum }'
}

median() { printf '%s\n' "$@" | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

# row NAME VALUE UNIT BAR MET
row() { printf '%-52s %10s %-6s %-26s %s\n' "$@" | tee -a /out/figures.txt; }

# ratio_row NAME OURS THEIRS BAR
ratio_row() {
  local ratio met
  ratio="$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", a / b }')"
  met="$(awk -v a="$ratio" -v b="$4" 'BEGIN { print (a <= b) ? "met" : "MISSED" }')"
  row "$1" "$ratio" x "at most $4" "$met"
}

# at_least_row NAME OURS THEIRS BAR
at_least_row() {
  local ratio met
  ratio="$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", a / b }')"
  met="$(awk -v a="$ratio" -v b="$4" 'BEGIN { print (a >= b) ? "met" : "MISSED" }')"
  row "$1" "$ratio" x "at least $4" "$met"
}

declare -a send ucx_am rpc endpoint write upload
events=0
for ((round = 0; round < rounds; ++round)); do
  send+=("$(perftest 5 ib_send_lat -s 64 -n 5000)")
  before="$(receiver_not_ready)"
  rpc+=("$(echo_p50 $((port_first + 2 * round)))")
  endpoint+=("$(echo_p50 $((port_first + 2 * round + 1)) --layer=endpoint)")
  events=$((events + $(receiver_not_ready) - before))
  ucx_am+=("$(ucx -t ucp_am_lat -s 64 -n 5000 -w 500)")
  write+=("$(perftest 4 ib_write_bw -s 1048576 -n 500)")
  before="$(receiver_not_ready)"
  upload+=("$(upload_mib $((port_first + 100 + round)))")
  events=$((events + $(receiver_not_ready) - before))
done
echo "ib_send_lat one way: ${send[*]}; ucp_am_lat one way: ${ucx_am[*]}"
echo "ib_write_bw: ${write[*]}; upload: ${upload[*]} MiB/s"
echo "RPC round trip: ${rpc[*]}; endpoint round trip: ${endpoint[*]}"

send_round_trip="$(awk -v t="$(median "${send[@]}")" 'BEGIN { print 2 * t }')"
ucx_round_trip="$(awk -v t="$(median "${ucx_am[@]}")" 'BEGIN { print 2 * t }')"
rpc_round_trip="$(median "${rpc[@]}")"
endpoint_round_trip="$(median "${endpoint[@]}")"
row "ib_send_lat -s 64, round trip (twice what it says)" "$send_round_trip" us "" ""
row "ucx_perftest -t ucp_am_lat -s 64, round trip" "$ucx_round_trip" us "" ""
row "echo of 64 bytes, endpoints, p50" "$endpoint_round_trip" us "" ""
row "echo of 64 bytes, generated stubs, p50" "$rpc_round_trip" us "" ""
ratio_row "  against ib_send_lat" "$rpc_round_trip" "$send_round_trip" 1.35
ratio_row "  against UCX active messages" "$rpc_round_trip" "$ucx_round_trip" 1.2
row "receivers that were not ready, meanwhile" "$events" "" 0 \
  "$([[ "$events" == 0 ]] && echo met || echo MISSED)"
row "WRITE of 1 MiB (ib_write_bw)" "$(median "${write[@]}")" MiB/s "" ""
row "upload of 1 MiB, 8 calls in flight" "$(median "${upload[@]}")" MiB/s "" ""
at_least_row "  against ib_write_bw" "$(median "${upload[@]}")" "$(median "${write[@]}")" 0.9
[[ "$events" == 0 ]]
