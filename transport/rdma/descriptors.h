// SPDX-License-Identifier: Apache-2.0
//
// What verbs' descriptors need: they block as they come, and who waits for one waits for something
// of ours, too.
//
// Threads: any. Sources: ibv_get_cq_event(3), ibv_get_async_event(3), epoll(7).

#pragma once

#include <initializer_list>

#include "verbena/base/unique_fd.h"

namespace verbena::rdma {

// False with errno.
bool MakeNonBlocking(int fd);

// A descriptor that is readable while any of `fds` is. Invalid with errno.
UniqueFd EpollOver(std::initializer_list<int> fds);

}  // namespace verbena::rdma
