// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/resolve.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "verbena/tests/support/must.h"
#include "verbena/tests/support/status_matchers.h"

namespace verbena::rdma {
namespace {

TEST(IsNumeric, TellsAddressesFromNames) {
  for (const char* host : {"127.0.0.1", "10.1.0.1", "::1", "fe80::1", "0.0.0.0", "::"}) {
    EXPECT_TRUE(IsNumeric(host)) << host;
  }
  for (const char* host : {"localhost", "a.example", "300.1.1.1", "", "10.1.0.1 "}) {
    EXPECT_FALSE(IsNumeric(host)) << host;
  }
}

TEST(IsLoopback, IsOneNetworkAndOneAddress) {
  const auto is_loopback = [](const char* host) {
    return IsLoopback(Must(LookUp({.scheme = "rdma", .host = host, .port = 1})).front());
  };
  for (const char* host : {"127.0.0.1", "127.255.3.4", "::1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"126.0.0.1", "128.0.0.1", "0.0.0.0", "::", "::2", "fd00::1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(LookUp, FindsAnIpv4Address) {
  auto found = Must(LookUp({.scheme = "rdma", .host = "10.1.2.3", .port = 7471}));
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size, sizeof(sockaddr_in));
  sockaddr_in address;
  std::memcpy(&address, found[0].get(), sizeof(address));
  EXPECT_EQ(address.sin_family, AF_INET);
  EXPECT_EQ(ntohl(address.sin_addr.s_addr), 0x0a010203u);
  EXPECT_EQ(ntohs(address.sin_port), 7471);
}

TEST(LookUp, FindsAnIpv6Address) {
  auto found = Must(LookUp({.scheme = "rdma", .host = "fd00::1", .port = 1}));
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size, sizeof(sockaddr_in6));
  sockaddr_in6 address;
  std::memcpy(&address, found[0].get(), sizeof(address));
  EXPECT_EQ(address.sin6_family, AF_INET6);
  EXPECT_EQ(address.sin6_addr.s6_addr[0], 0xfd);
  EXPECT_EQ(address.sin6_addr.s6_addr[15], 1);
  EXPECT_EQ(ntohs(address.sin6_port), 1);
}

TEST(LookUp, FindsAName) {
  auto found = LookUp({.scheme = "rdma", .host = "localhost", .port = 7471});
  ASSERT_THAT(found, IsOk());
  ASSERT_FALSE(found->empty());
  for (const SocketAddress& one : *found) {
    EXPECT_TRUE(one.storage.ss_family == AF_INET || one.storage.ss_family == AF_INET6);
  }
}

TEST(LookUp, OfAnUnknownHostIsUnavailableAndNamesIt) {
  // RFC 6761: nobody may answer for it.
  EXPECT_THAT(LookUp({.scheme = "rdma", .host = "nobody.invalid", .port = 7471}),
              Is(absl::StatusCode::kUnavailable, "the host \"nobody.invalid\" is not known: "));
}

}  // namespace
}  // namespace verbena::rdma
