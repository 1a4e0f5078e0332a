// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace verbena::doctor {

bool IsIpv4(const IpAddress& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](uint8_t b) { return b == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

bool IsLinkLocal(const IpAddress& address) {
  if (IsIpv4(address)) return address[12] == 169 && address[13] == 254;
  return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

bool IsLoopback(const IpAddress& address) {
  if (IsIpv4(address)) return address[12] == 127;
  return address[15] == 1 &&
         std::all_of(address.begin(), address.end() - 1, [](uint8_t b) { return b == 0; });
}

std::string ToText(const IpAddress& address) {
  if (IsIpv4(address)) {
    return absl::StrCat(address[12], ".", address[13], ".", address[14], ".", address[15]);
  }
  return GidText(address);
}

std::string GidText(const IpAddress& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.data(), text, sizeof(text));
  return text;
}

IpAddress ParseAddress(const std::string& text) {
  IpAddress address{};
  const bool ipv6 = text.find(':') != std::string::npos;
  const std::string mapped = ipv6 ? text : absl::StrCat("::ffff:", text);
  if (inet_pton(AF_INET6, mapped.c_str(), address.data()) != 1) return IpAddress{};
  return address;
}

}  // namespace verbena::doctor
