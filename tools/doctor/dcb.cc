// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/dcb.h"

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <optional>

#include "verbena/base/unique_fd.h"

namespace verbena::doctor {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kAttributeHeader = sizeof(nlattr);

constexpr size_t Aligned(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

template <class T>
void Append(const T& value, std::vector<uint8_t>* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(value));
}

template <class T>
T Read(Bytes from) {
  T value{};
  memcpy(&value, from.data(), std::min(sizeof(value), from.size()));
  return value;
}

std::vector<uint8_t> Question(const std::string& netdev) {
  nlattr name{};
  name.nla_type = DCB_ATTR_IFNAME;
  name.nla_len = static_cast<uint16_t>(kAttributeHeader + netdev.size() + 1);
  nlmsghdr header{};
  header.nlmsg_len =
      static_cast<uint32_t>(sizeof(nlmsghdr) + Aligned(sizeof(dcbmsg)) + Aligned(name.nla_len));
  header.nlmsg_type = RTM_GETDCB;
  header.nlmsg_flags = NLM_F_REQUEST;
  dcbmsg question{};
  question.cmd = DCB_CMD_IEEE_GET;
  std::vector<uint8_t> message;
  Append(header, &message);
  Append(question, &message);
  message.resize(sizeof(nlmsghdr) + Aligned(sizeof(dcbmsg)));
  Append(name, &message);
  message.insert(message.end(), netdev.begin(), netdev.end());
  message.resize(header.nlmsg_len);
  return message;
}

// The value of the first attribute of this type.
std::optional<Bytes> Find(Bytes attributes, uint16_t type) {
  while (attributes.size() >= kAttributeHeader) {
    auto header = Read<nlattr>(attributes);
    if (header.nla_len < kAttributeHeader || header.nla_len > attributes.size()) break;
    if ((header.nla_type & NLA_TYPE_MASK) == type) {
      return attributes.subspan(kAttributeHeader, header.nla_len - kAttributeHeader);
    }
    attributes = attributes.subspan(std::min(Aligned(header.nla_len), attributes.size()));
  }
  return std::nullopt;
}

uint64_t Sum(const __u64 (&values)[IEEE_8021QAZ_MAX_TCS]) {
  uint64_t sum = 0;
  for (uint64_t value : values) sum += value;
  return sum;
}

}  // namespace

std::vector<uint8_t> AskDcb(const std::string& netdev) {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd.valid()) return {};
  // Netlink answers at once; this bounds a kernel that does not.
  timeval bound{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
  std::vector<uint8_t> question = Question(netdev);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd.get(), question.data(), question.size(), 0, reinterpret_cast<sockaddr*>(&kernel),
             sizeof(kernel)) < 0) {
    return {};
  }
  std::vector<uint8_t> answer(size_t{16} << 10);
  ssize_t bytes = recv(fd.get(), answer.data(), answer.size(), 0);
  answer.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return answer;
}

void ParseDcbAnswer(Bytes message, NetdevFacts* netdev) {
  if (message.size() < sizeof(nlmsghdr)) return;
  auto header = Read<nlmsghdr>(message);
  constexpr size_t kAttributes = sizeof(nlmsghdr) + Aligned(sizeof(dcbmsg));
  if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_len > message.size() ||
      header.nlmsg_len < kAttributes) {
    return;
  }
  std::optional<Bytes> ieee =
      Find(message.subspan(kAttributes, header.nlmsg_len - kAttributes), DCB_ATTR_IEEE);
  if (!ieee.has_value()) return;
  std::optional<Bytes> value = Find(*ieee, DCB_ATTR_IEEE_PFC);
  if (!value.has_value() || value->size() < sizeof(ieee_pfc)) return;
  auto pfc = Read<ieee_pfc>(*value);
  netdev->pfc_priorities = pfc.pfc_en;
  netdev->counters.push_back({"dcb", "pfc_requests", Sum(pfc.requests)});
  netdev->counters.push_back({"dcb", "pfc_indications", Sum(pfc.indications)});
}

}  // namespace verbena::doctor
