// SPDX-License-Identifier: Apache-2.0
//
// The first transition of a queue pair, which nobody but us makes; librdmacm has the attributes of
// the others. Threads: as of the pair. Source: ibv_modify_qp(3).

#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbena::rdma {

// RESET to INIT on `port`, with what the peer may do to memory that is open to it. Returns 0 or an
// errno. The port may change when the route is known; receives may be posted from here on.
int MoveToInit(ibv_qp* pair, uint8_t port, unsigned peer_rights);

}  // namespace verbena::rdma
