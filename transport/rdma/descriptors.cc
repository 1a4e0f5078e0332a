// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/descriptors.h"

#include <fcntl.h>
#include <sys/epoll.h>

namespace verbena::rdma {

bool MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

UniqueFd EpollOver(std::initializer_list<int> fds) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : fds) {
    epoll_event watched{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &watched) != 0) return {};
  }
  return epoll;
}

}  // namespace verbena::rdma
