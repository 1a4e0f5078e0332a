// SPDX-License-Identifier: Apache-2.0
//
// The address of a server: "shm:NAME", "rdma:HOST:PORT" or "tcp:HOST:PORT". A value; no threads.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace verbena {

struct Address {
  std::string scheme;  // "shm", "rdma" or "tcp".
  std::string host;    // "shm": the name; else a host name or an IP address without brackets.
  uint16_t port = 0;   // "shm": 0.

  // Parses the forms above; an IPv6 host is written in brackets, "rdma:[fe80::1]:7471".
  // Errors: INVALID_ARGUMENT that shows the text and the form expected. A shm name has 1 to 90
  // characters, letters, digits and "._-".
  static absl::StatusOr<Address> Parse(std::string_view text);

  std::string ToString() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// What an address is looked up for.
enum class AddressUse { kListen, kConnect };

}  // namespace verbena
