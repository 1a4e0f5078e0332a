// SPDX-License-Identifier: Apache-2.0
//
// The same over a TCP socket, as one would write it without a framework:
// tcp receive PORT | tcp send PORT [MiB] [rounds]        a port of 0: whichever is free

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "examples/02_bulk_transfer/common.h"

struct Header {
  uint64_t bytes;
};
struct Reply {
  uint64_t sum;
  double cpu_seconds;
};

bool SendAll(int fd, const void* data, size_t bytes, bool progress = false) {
  const size_t all = bytes;
  for (auto* at = static_cast<const std::byte*>(data); bytes > 0;) {
    const ssize_t sent = send(fd, at, std::min<size_t>(bytes, 1 << 20), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
    if (progress && (bytes >> 20) % 64 == 0) {
      PrintProgress(1 - static_cast<double>(bytes) / static_cast<double>(all));
    }
  }
  return true;
}

bool ReceiveAll(int fd, void* data, size_t bytes) {
  for (auto* at = static_cast<std::byte*>(data); bytes > 0;) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

int Receive(const sockaddr_in& address) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener, 1) != 0) {
    std::perror("listen");
    return 1;
  }
  sockaddr_in bound{};
  socklen_t bound_bytes = sizeof(bound);
  getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bound_bytes);
  std::printf("Listening at port %d. Stop with Ctrl-C.\n", ntohs(bound.sin_port));
  std::fflush(stdout);
  std::vector<std::byte> content;
  while (true) {
    const int peer = accept(listener, nullptr, nullptr);
    Header header{};
    while (ReceiveAll(peer, &header, sizeof(header))) {
      content.resize(header.bytes);
      if (!ReceiveAll(peer, content.data(), content.size())) break;
      const Reply reply = {SumOfPages(content), CpuSeconds()};
      SendAll(peer, &reply, sizeof(reply));
    }
    close(peer);
  }
}

int Send(const sockaddr_in& address, size_t bytes, int rounds) {
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror("connect");
    return 1;
  }
  std::vector<std::byte> content(bytes);
  FillPages(content);
  double receiver_cpu = 0;
  for (int round = 1; round <= rounds; ++round) {
    const double start = Now();
    const double cpu = CpuSeconds();
    const Header header = {bytes};
    Reply reply{};
    if (!SendAll(peer, &header, sizeof(header)) || !SendAll(peer, content.data(), bytes, true) ||
        !ReceiveAll(peer, &reply, sizeof(reply)) || reply.sum != SumOfPages(content)) {
      std::fprintf(stderr, "\nthe receiver is gone, or has something else\n");
      return 1;
    }
    const double both = CpuSeconds() - cpu + reply.cpu_seconds - receiver_cpu;
    receiver_cpu = reply.cpu_seconds;
    PrintRound(round, static_cast<double>(bytes), Now() - start, both);
  }
  return 0;
}

int main(int argc, char* argv[]) {
  if (argc < 3) return std::fprintf(stderr, "tcp receive PORT | tcp send PORT [MiB] [rounds]\n"), 2;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (std::string(argv[1]) == "receive") return Receive(address);
  const size_t bytes = size_t{argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1024} << 20;
  return Send(address, bytes, argc > 4 ? std::atoi(argv[4]) : 5);
}
