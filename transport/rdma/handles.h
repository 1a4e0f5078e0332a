// SPDX-License-Identifier: Apache-2.0
//
// Owners of what libibverbs and librdmacm hand out. A destruction that fails means that something
// made from the object still lives, which is our mistake: it is checked.
//
// Threads: as the object's.

#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

#include "glog/logging.h"

namespace verbena::rdma {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    const int result = Destroy(object);
    CHECK_EQ(result, 0) << "an RDMA object outlives what it was made from";
  }
};

// ibv_dealloc_mw(3) is a static inline function, which cannot be a part of a type's name.
inline int DeallocateWindow(ibv_mw* window) { return ibv_dealloc_mw(window); }

using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using DomainHandle = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using RegionHandle = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using WindowHandle = std::unique_ptr<ibv_mw, Destroyer<DeallocateWindow>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using QueueHandle = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using PairHandle = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using SharedReceiveHandle = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;

struct EventChannelDestroyer {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using EventChannelHandle = std::unique_ptr<rdma_event_channel, EventChannelDestroyer>;

struct IdDestroyer {
  // Waits until every event of the id that was taken is acknowledged; ours are at once.
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using IdHandle = std::unique_ptr<rdma_cm_id, IdDestroyer>;

}  // namespace verbena::rdma
