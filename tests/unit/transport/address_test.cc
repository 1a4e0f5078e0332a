// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "verbena/tests/support/status_matchers.h"

namespace verbena {
namespace {

void ExpectParsed(const std::string& text, const Address& expected) {
  const absl::StatusOr<Address> address = Address::Parse(text);
  ASSERT_THAT(address, IsOk()) << text;
  EXPECT_EQ(*address, expected) << text << " became " << address->ToString();
  EXPECT_EQ(address->ToString(), text);
}

TEST(Address, ParsesANameInSharedMemory) {
  ExpectParsed("shm:echo", {.scheme = "shm", .host = "echo", .port = 0});
  ExpectParsed("shm:a", {.scheme = "shm", .host = "a", .port = 0});
  ExpectParsed("shm:Az09._-", {.scheme = "shm", .host = "Az09._-", .port = 0});
}

TEST(Address, ParsesAHostAndAPort) {
  ExpectParsed("rdma:node7.cluster:7471", {.scheme = "rdma", .host = "node7.cluster", .port = 7471});
  ExpectParsed("tcp:192.0.2.1:1", {.scheme = "tcp", .host = "192.0.2.1", .port = 1});
  ExpectParsed("tcp:localhost:0", {.scheme = "tcp", .host = "localhost", .port = 0});
  ExpectParsed("tcp:localhost:65535", {.scheme = "tcp", .host = "localhost", .port = 65535});
}

TEST(Address, ParsesAnIpv6HostInBrackets) {
  ExpectParsed("rdma:[fe80::1]:7471", {.scheme = "rdma", .host = "fe80::1", .port = 7471});
  ExpectParsed("tcp:[::]:80", {.scheme = "tcp", .host = "::", .port = 80});
}

TEST(Address, TakesASharedMemoryNameOf90CharactersAndNot91) {
  ExpectParsed("shm:" + std::string(90, 'x'),
               {.scheme = "shm", .host = std::string(90, 'x'), .port = 0});
  EXPECT_THAT(Address::Parse("shm:" + std::string(91, 'x')),
              Is(absl::StatusCode::kInvalidArgument, "over 90 characters"));
}

TEST(Address, ShowsTheTextAndTheFormsWhenItRefuses) {
  const absl::Status status = Address::Parse("udp:host:1").status();
  EXPECT_THAT(status, Is(absl::StatusCode::kInvalidArgument, "\"udp:host:1\""));
  EXPECT_THAT(status, Is(absl::StatusCode::kInvalidArgument,
                         "Write shm:NAME, rdma:HOST:PORT or tcp:HOST:PORT"));
}

struct Bad {
  std::string text;
  std::string why;
};

TEST(Address, RefusesWhatIsNoAddress) {
  const std::vector<Bad> all = {
      {"", "no scheme"},
      {"echo", "no scheme"},
      {":", "the scheme is unknown"},
      {":echo", "the scheme is unknown"},
      {"SHM:echo", "the scheme is unknown"},
      {" shm:echo", "the scheme is unknown"},
      {"http://host:1", "the scheme is unknown"},
      {"shm:", "the name is empty"},
      {"shm:a b", "letters, digits"},
      {"shm:a/b", "letters, digits"},
      {"shm:a:b", "letters, digits"},
      {"shm:\xc3\xa4", "letters, digits"},
      {std::string("shm:a\0b", 7), "letters, digits"},
      {"rdma:", "the port is missing"},
      {"rdma:host", "the port is missing"},
      {"rdma::7471", "the host is empty"},
      {"rdma:host:", "the port is not a number"},
      {"rdma:host:65536", "the port is not a number"},
      {"rdma:host:4294967297", "the port is not a number"},
      {"rdma:host:99999999999999999999", "the port is not a number"},
      {"rdma:host:-1", "the port is not a number"},
      {"rdma:host:+1", "the port is not a number"},
      {"rdma:host: 1", "the port is not a number"},
      {"rdma:host:1 ", "the port is not a number"},
      {"rdma:host:0x10", "the port is not a number"},
      {"rdma:host:port", "the port is not a number"},
      {"rdma:fe80::1:7471", "written in brackets"},
      {"rdma:[fe80::1]", "]:PORT"},
      {"rdma:[fe80::1]7471", "]:PORT"},
      {"rdma:[fe80::1", "]:PORT"},
      {"rdma:[]:7471", "the host is empty"},
      {"rdma:[fe80::1]:", "the port is not a number"},
      {"tcp:[fe80::1]:7471:1", "the port is not a number"},
  };
  for (const Bad& bad : all) {
    EXPECT_THAT(Address::Parse(bad.text), Is(absl::StatusCode::kInvalidArgument, bad.why))
        << "for \"" << bad.text << "\"";
  }
}

}  // namespace
}  // namespace verbena
