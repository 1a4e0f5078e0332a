// SPDX-License-Identifier: Apache-2.0
//
// Host names and IP addresses of both families. Threads: any.
// Source: getaddrinfo(3).

#pragma once

#include <sys/socket.h>

#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/address.h"

namespace verbena::rdma {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Whether `host` is an IP address, so that looking it up asks nobody.
bool IsNumeric(const std::string& host);

// 127.0.0.0/8 and ::1. librdmacm takes them for "any address" when it listens, and only InfiniBand
// connects to them.
bool IsLoopback(const SocketAddress& address);

// All addresses of the host, the preferred first. May ask name servers, and take as long as they
// do. Errors: UNAVAILABLE with the resolver's reason.
absl::StatusOr<std::vector<SocketAddress>> LookUp(const Address& address);

}  // namespace verbena::rdma
