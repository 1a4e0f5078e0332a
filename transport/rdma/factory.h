// SPDX-License-Identifier: Apache-2.0
//
// The only door to rdma-core: reliable connections over InfiniBand, RoCE v1/v2 and iWARP by
// libibverbs and librdmacm. Addresses are "rdma:HOST:PORT", HOST an IPv4 or IPv6 address or a name.
//
// fork(2): children that exec are safe on every kernel; a child that does not exec must not use the
// device. Where the kernel does not copy pinned pages at fork, libibverbs is told to
// (ibv_fork_init) before the first device is opened.
//
// Sources: ibv_open_device(3), rdma_cm(7), ibv_fork_init(3).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbena/transport/address.h"
#include "verbena/transport/device.h"

namespace verbena {

struct RdmaDeviceOptions {
  // "mlx5_0", "rxe0", ...; empty: the first that is usable, those with an active port first.
  std::string device;
};

// Errors: UNAVAILABLE saying why there is no such device here and what to do (no kernel module, no
// device, /dev/infiniband not visible, no permission, no reliable connections).
absl::StatusOr<std::unique_ptr<Device>> CreateRdmaDevice(const RdmaDeviceOptions& options = {});

// The name of the device for `address`. Where this host has one device, that one. Else, to listen,
// the address's owner; to connect, the one by which the kernel's routes lead there.
// Sends nothing; but with several devices a host name is looked up, which may block as
// getaddrinfo(3) does. Errors: UNAVAILABLE as above, or naming the address that none serves.
absl::StatusOr<std::string> RdmaDeviceFor(const Address& address, AddressUse use);

}  // namespace verbena
