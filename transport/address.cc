// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/address.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace verbena {
namespace {

// A Unix socket's abstract name has 107 usable bytes (unix(7)); the rest is the device's prefix.
constexpr size_t kShmNameBytesMax = 90;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Malformed(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", ToAbsl(text), "\" is not a server address: ", ToAbsl(why),
                   ". Write shm:NAME, rdma:HOST:PORT or tcp:HOST:PORT."));
}

absl::StatusOr<Address> ParseShm(std::string_view text, std::string_view name) {
  if (name.empty()) return Malformed(text, "the name is empty");
  if (name.size() > kShmNameBytesMax) return Malformed(text, "the name has over 90 characters");
  for (char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') {
      return Malformed(text, "a shm name has letters, digits, '.', '_' and '-' only");
    }
  }
  return Address{.scheme = "shm", .host = std::string(name), .port = 0};
}

}  // namespace

absl::StatusOr<Address> Address::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Malformed(text, "it has no scheme");
  const std::string_view scheme = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  if (scheme == "shm") return ParseShm(text, rest);
  if (scheme != "rdma" && scheme != "tcp") return Malformed(text, "the scheme is unknown");

  std::string_view host;
  std::string_view port_text;
  if (!rest.empty() && rest.front() == '[') {
    const size_t bracket = rest.find("]:");
    if (bracket == std::string_view::npos) return Malformed(text, "an IPv6 host needs \"]:PORT\"");
    host = rest.substr(1, bracket - 1);
    port_text = rest.substr(bracket + 2);
  } else {
    const size_t last = rest.rfind(':');
    if (last == std::string_view::npos) return Malformed(text, "the port is missing");
    host = rest.substr(0, last);
    port_text = rest.substr(last + 1);
    if (host.find(':') != std::string_view::npos) {
      return Malformed(text, "an IPv6 host is written in brackets");
    }
  }
  if (host.empty()) return Malformed(text, "the host is empty");
  uint32_t port = 0;
  const bool digits_only = port_text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits_only || !absl::SimpleAtoi(ToAbsl(port_text), &port) || port > 65535) {
    return Malformed(text, "the port is not a number from 0 to 65535");
  }
  return Address{.scheme = std::string(scheme),
                 .host = std::string(host),
                 .port = static_cast<uint16_t>(port)};
}

std::string Address::ToString() const {
  if (scheme == "shm") return absl::StrCat("shm:", host);
  if (host.find(':') != std::string::npos) return absl::StrCat(scheme, ":[", host, "]:", port);
  return absl::StrCat(scheme, ":", host, ":", port);
}

}  // namespace verbena
