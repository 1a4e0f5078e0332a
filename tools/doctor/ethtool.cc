// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "verbena/base/unique_fd.h"

namespace verbena::doctor {
namespace {

// A driver may grow its list of counters between two calls; past this, something is wrong.
constexpr uint32_t kCountersMax = 1 << 16;

bool Ask(const std::string& netdev, void* question) {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || netdev.size() >= IFNAMSIZ) return false;
  ifreq request{};
  memcpy(request.ifr_name, netdev.data(), netdev.size());
  request.ifr_data = static_cast<char*>(question);
  return ioctl(fd.get(), SIOCETHTOOL, &request) == 0;
}

// Room for a header and `count` entries behind it, of which a driver may have grown twice as many
// by the time it answers.
template <class Header>
std::vector<uint64_t> Room(uint32_t count, size_t entry_bytes) {
  return std::vector<uint64_t>((sizeof(Header) + 2 * count * entry_bytes) / sizeof(uint64_t) + 1);
}

}  // namespace

std::vector<Counter> EthtoolCounters(const std::string& netdev) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!Ask(netdev, &info) || info.n_stats == 0 || info.n_stats > kCountersMax) return {};

  std::vector<uint64_t> names_room = Room<ethtool_gstrings>(info.n_stats, ETH_GSTRING_LEN);
  auto* names = reinterpret_cast<ethtool_gstrings*>(names_room.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = info.n_stats;
  std::vector<uint64_t> values_room = Room<ethtool_stats>(info.n_stats, sizeof(uint64_t));
  auto* values = reinterpret_cast<ethtool_stats*>(values_room.data());
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = info.n_stats;
  if (!Ask(netdev, names) || !Ask(netdev, values)) return {};

  std::vector<Counter> counters;
  const auto* name = reinterpret_cast<const char*>(names_room.data()) + sizeof(ethtool_gstrings);
  const auto* value = reinterpret_cast<const char*>(values_room.data()) + sizeof(ethtool_stats);
  for (uint32_t i = 0; i < std::min({names->len, values->n_stats, info.n_stats}); ++i) {
    Counter counter{"ethtool", std::string(name, strnlen(name, ETH_GSTRING_LEN)), 0};
    memcpy(&counter.value, value, sizeof(counter.value));
    counters.push_back(std::move(counter));
    name += ETH_GSTRING_LEN;
    value += sizeof(uint64_t);
  }
  return counters;
}

std::optional<bool> EthtoolPause(const std::string& netdev) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  if (!Ask(netdev, &pause)) return std::nullopt;
  return pause.rx_pause != 0 || pause.tx_pause != 0;
}

}  // namespace verbena::doctor
