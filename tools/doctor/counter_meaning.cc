// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/counter_meaning.h"

#include <fnmatch.h>

#include <algorithm>

namespace verbena::doctor {
namespace {

struct Meaning {
  const char* pattern;  // fnmatch(3)
  Trouble trouble;
};

// Of an RDMA port. Names are the drivers': m = mlx5, 4 = mlx4 (sq_num_: as requester, rq_num_: as
// responder), b = bnxt_re, i = irdma, x = rxe, e = efa; "counters" are InfiniBand's own
// (InfiniBand specification, 16.1.3.5 PortCounters).
constexpr Meaning kPortMeanings[] = {
    {"local_ack_timeout_err", Trouble::kRetransmission},  // m
    {"roce_adp_retrans*", Trouble::kRetransmission},      // m
    {"roce_slow_restart*", Trouble::kRetransmission},     // m
    {"sq_num_to", Trouble::kRetransmission},              // 4
    {"to_retransmits", Trouble::kRetransmission},         // b
    {"*[rR]etransSegs", Trouble::kRetransmission},        // i
    {"completer_retry_err", Trouble::kRetransmission},    // x
    {"retrans_*", Trouble::kRetransmission},              // e
    {"packet_seq_err", Trouble::kOutOfSequence},          // m
    {"implied_nak_seq_err", Trouble::kOutOfSequence},     // m
    {"out_of_sequence", Trouble::kOutOfSequence},         // m
    {"duplicate_request", Trouble::kOutOfSequence},       // m x
    {"[rs]q_num_oos", Trouble::kOutOfSequence},           // 4
    {"rq_num_dup", Trouble::kOutOfSequence},              // 4
    {"seq_err_naks_rcvd", Trouble::kOutOfSequence},       // b
    {"dup_req*", Trouble::kOutOfSequence},                // b
    {"oos_drop_count", Trouble::kOutOfSequence},          // b
    {"rcvd_seq_err", Trouble::kOutOfSequence},            // x
    {"out_of_seq_request", Trouble::kOutOfSequence},      // x
    {"rnr_nak_retry_err", Trouble::kReceiverNotReady},    // m
    {"out_of_buffer", Trouble::kReceiverNotReady},        // m
    {"[rs]q_num_rnr", Trouble::kReceiverNotReady},        // 4
    {"rnr_naks_rcvd", Trouble::kReceiverNotReady},        // b
    {"RNR *", Trouble::kReceiverNotReady},                // i
    {"rcvd_rnr_err", Trouble::kReceiverNotReady},         // x
    {"send_rnr_err", Trouble::kReceiverNotReady},         // x
    {"rx_roce_discard*", Trouble::kDiscard},              // b
    {"tx_roce_discard*", Trouble::kDiscard},              // b
    {"ip[46]InDiscards", Trouble::kDiscard},              // i
    {"rx_drops", Trouble::kDiscard},                      // e
    {"port_xmit_discards", Trouble::kDiscard},
    {"VL15_dropped", Trouble::kDiscard},
    {"req_cqe_error", Trouble::kBroken},            // m
    {"resp_cqe_error", Trouble::kBroken},           // m
    {"req_remote_*", Trouble::kBroken},             // m
    {"resp_remote_*", Trouble::kBroken},            // m
    {"resp_local_length_error", Trouble::kBroken},  // m
    {"rx_icrc_encapsulated", Trouble::kBroken},     // m
    {"sq_num_tree", Trouble::kBroken},              // 4
    {"sq_num_rree", Trouble::kBroken},              // 4
    {"max_retry_exceeded", Trouble::kBroken},       // b
    {"unrecoverable_err", Trouble::kBroken},        // b
    {"retry_exceeded_err", Trouble::kBroken},       // x
    {"retry_rnr_exceeded_err", Trouble::kBroken},   // x
    {"link_downed", Trouble::kBroken},              // x, and InfiniBand's
    {"symbol_error", Trouble::kBroken},
    {"link_error_recovery", Trouble::kBroken},
    {"local_link_integrity_errors", Trouble::kBroken},
    {"excessive_buffer_overrun_errors", Trouble::kBroken},
    {"port_rcv_errors", Trouble::kBroken},
    {"np_ecn_marked_roce_packets", Trouble::kCongestion},  // m
    {"np_cnp_sent", Trouble::kCongestion},                 // m
    {"rp_cnp_handled", Trouble::kCongestion},              // m
    {"rp_cnp_ignored", Trouble::kCongestion},              // m
    {"rx_ecn_marked_pkts", Trouble::kCongestion},          // b
    {"[rt]x_cnp_pkts", Trouble::kCongestion},              // b
    {"cnp[SHI]*", Trouble::kCongestion},                   // i
    {"RxECNMrkd", Trouble::kCongestion},                   // i
    {"port_xmit_wait", Trouble::kCongestion},
};

// Of a net device: sysfs's statistics, then the drivers' own as `ethtool -S` has them.
constexpr Meaning kNetdevMeanings[] = {
    {"rx_dropped", Trouble::kDiscard},
    {"tx_dropped", Trouble::kDiscard},
    {"rx_missed_errors", Trouble::kDiscard},
    {"rx_over_errors", Trouble::kDiscard},
    {"rx_fifo_errors", Trouble::kDiscard},
    {"tx_fifo_errors", Trouble::kDiscard},
    {"rx_crc_errors", Trouble::kBroken},
    {"tx_carrier_errors", Trouble::kBroken},
    {"[rt]x_discards_phy", Trouble::kDiscard},           // m
    {"rx_prio[0-7]_discards", Trouble::kDiscard},        // m
    {"rx_prio[0-7]_buf_discard", Trouble::kDiscard},     // m
    {"[rt]x_prio[0-7]_pause", Trouble::kPause},          // m
    {"[rt]x_pause_ctrl_phy", Trouble::kPause},           // m
    {"[rt]x_global_pause", Trouble::kPause},             // m
    {"tx_pause_storm_*_events", Trouble::kBroken},       // m
    {"[rt]x_pfc_ena_frames_pri[0-7]", Trouble::kPause},  // b
    {"[rt]x_pause_frames", Trouble::kPause},             // b
    {"[rt]x_priority_[0-7]_xoff.nic", Trouble::kPause},  // ice, below irdma
    {"pfc_requests", Trouble::kPause},                   // dcb
    {"pfc_indications", Trouble::kPause},                // dcb
};

template <size_t kCount>
Trouble Find(const Meaning (&meanings)[kCount], const std::string& name) {
  for (const Meaning& meaning : meanings) {
    if (fnmatch(meaning.pattern, name.c_str(), 0) == 0) return meaning.trouble;
  }
  return Trouble::kNone;
}

void AddOnce(const std::string& name, const Facts& facts, std::vector<const NetdevFacts*>* found) {
  for (const NetdevFacts& netdev : facts.netdevs) {
    if (netdev.name != name) continue;
    if (std::find(found->begin(), found->end(), &netdev) == found->end()) found->push_back(&netdev);
  }
}

}  // namespace

Trouble MeaningOf(const Counter& counter) {
  const bool of_port = counter.source == "counters" || counter.source == "hw_counters";
  return of_port ? Find(kPortMeanings, counter.name) : Find(kNetdevMeanings, counter.name);
}

const char* Name(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone:
      return "none";
    case Trouble::kRetransmission:
      return "retransmission";
    case Trouble::kOutOfSequence:
      return "out_of_sequence";
    case Trouble::kReceiverNotReady:
      return "receiver_not_ready";
    case Trouble::kDiscard:
      return "discard";
    case Trouble::kBroken:
      return "broken";
    case Trouble::kCongestion:
      return "congestion";
    case Trouble::kPause:
      return "pause";
  }
  return "unknown";
}

std::vector<Counter> NonZero(const std::vector<Counter>& counters, Trouble trouble) {
  std::vector<Counter> found;
  for (const Counter& counter : counters) {
    if (counter.value != 0 && MeaningOf(counter) == trouble) found.push_back(counter);
  }
  return found;
}

std::vector<const NetdevFacts*> NetdevsOf(const DeviceFacts& device, const PortFacts& port,
                                          const Facts& facts) {
  std::vector<const NetdevFacts*> found;
  for (const GidFacts& gid : port.gids) AddOnce(gid.netdev, facts, &found);
  // Which port an address leads to is only clear where there is one.
  if (!found.empty() || device.ports.size() != 1) return found;
  for (const AddressRoute& route : facts.host.routes) {
    if (route.device == device.name) AddOnce(route.netdev, facts, &found);
  }
  return found;
}

std::vector<Counter> AllCounters(const DeviceFacts& device, const PortFacts& port,
                                 const Facts& facts) {
  std::vector<Counter> all = port.counters;
  for (const NetdevFacts* netdev : NetdevsOf(device, port, facts)) {
    all.insert(all.end(), netdev->counters.begin(), netdev->counters.end());
  }
  return all;
}

}  // namespace verbena::doctor
