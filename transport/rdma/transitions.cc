// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/transitions.h"

#include "verbena/transport/rdma/errors.h"

namespace verbena::rdma {

int MoveToInit(ibv_qp* pair, uint8_t port, unsigned peer_rights) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.qp_access_flags = peer_rights;
  int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  if (pair->context->device->transport_type != IBV_TRANSPORT_IWARP) {
    mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX;
  }
  const int result = ibv_modify_qp(pair, &attributes, mask);
  return result == 0 ? 0 : ErrorOf(result);
}

}  // namespace verbena::rdma
