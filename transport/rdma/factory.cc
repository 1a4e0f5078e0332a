// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/rdma/factory.h"

#include <errno.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "verbena/base/unique_fd.h"
#include "verbena/transport/rdma/cm_id.h"
#include "verbena/transport/rdma/device_impl.h"
#include "verbena/transport/rdma/errors.h"
#include "verbena/transport/rdma/resolve.h"

namespace verbena {
namespace {

struct ListDeleter {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device*[], ListDeleter>;

bool Exists(const char* path) {
  struct stat ignored;
  return stat(path, &ignored) == 0;
}

// Why the list is empty, and what to do.
absl::Status NoDevices() {
  if (!Exists("/sys/class/infiniband_verbs")) {
    return absl::UnavailableError(
        "no RDMA device: the kernel has no ib_uverbs module (modprobe ib_uverbs)");
  }
  if (Exists("/sys/class/infiniband_verbs/uverbs0") && !Exists("/dev/infiniband")) {
    return absl::UnavailableError(
        "no RDMA device: the host has one, but /dev/infiniband is not visible here; give it to "
        "the container (--device=/dev/infiniband)");
  }
  return absl::UnavailableError(
      "no RDMA device: there is no NIC with a driver, and no software one (rdma link add rxe0 type "
      "rxe netdev eth0)");
}

// fork(2) duplicates pages that the NIC writes to unless the kernel copies them at once (Linux 5.12
// and later, where libibverbs has nothing to do and ibv_fork_init would only split mappings).
void PrepareForFork() {
  static const bool prepared = [] {
    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED) return true;
    const int result = ibv_fork_init();
    LOG_IF(WARNING, result != 0) << "a child of fork(2) may corrupt transfers of this process; "
                                 << rdma::Describe("ibv_fork_init", rdma::ErrorOf(result));
    return result == 0;
  }();
  (void)prepared;
}

absl::StatusOr<DeviceList> ListDevices(int* count) {
  PrepareForFork();
  errno = 0;
  DeviceList list(ibv_get_device_list(count));
  if (list == nullptr || *count == 0) return NoDevices();
  return list;
}

// The address of ours from which packets to `to` leave. Sends nothing: UDP.
bool LocalAddressTowards(const rdma::SocketAddress& to, rdma::SocketAddress* local) {
  const UniqueFd socket(::socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || connect(socket.get(), to.get(), to.size) != 0) return false;
  local->size = sizeof(local->storage);
  return getsockname(socket.get(), local->get(), &local->size) == 0;
}

// The name of the device that has this address; empty if none has.
std::string OwnerOf(const rdma::EventChannel& channel, rdma::SocketAddress address) {
  auto id = rdma::CmId::Create(channel);
  if (!id.ok()) return {};
  // Port 0: any. The field is at the same place in both families.
  reinterpret_cast<sockaddr_in*>(address.get())->sin_port = 0;
  return rdma_bind_addr(id->get(), address.get()) == 0 ? id->device() : std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateRdmaDevice(const RdmaDeviceOptions& options) {
  int count = 0;
  auto list = ListDevices(&count);
  if (!list.ok()) return list.status();
  std::vector<std::string> reasons;
  std::unique_ptr<rdma::RdmaDevice> inactive;
  for (int i = 0; i < count; ++i) {
    const std::string name = ibv_get_device_name((*list)[i]);
    if (!options.device.empty() && name != options.device) {
      reasons.push_back(absl::StrCat(name, ": not the one asked for"));
      continue;
    }
    auto device = rdma::RdmaDevice::Open((*list)[i]);
    if (!device.ok()) {
      reasons.push_back(absl::StrCat(name, ": ", device.status().message()));
    } else if ((*device)->has_active_port() || !options.device.empty()) {
      return *std::move(device);
    } else if (inactive == nullptr) {
      inactive = *std::move(device);
    }
  }
  if (inactive != nullptr) return inactive;
  return absl::UnavailableError(
      absl::StrCat("no RDMA device ", options.device.empty() ? "that can be used" : options.device,
                   " (", absl::StrJoin(reasons, "; "), ")"));
}

absl::StatusOr<std::string> RdmaDeviceFor(const Address& address, AddressUse use) {
  int count = 0;
  auto list = ListDevices(&count);
  if (!list.ok()) return list.status();
  if (count == 1) return ibv_get_device_name((*list)[0]);
  auto addresses = rdma::LookUp(address);
  if (!addresses.ok()) return addresses.status();
  auto channel = rdma::MakeEventChannel();
  if (!channel.ok()) return channel.status();
  for (const rdma::SocketAddress& to : *addresses) {
    if (use == AddressUse::kListen) {
      if (std::string owner = OwnerOf(*channel, to); !owner.empty()) return owner;
      continue;
    }
    rdma::SocketAddress local;
    if (!LocalAddressTowards(to, &local)) continue;
    if (std::string owner = OwnerOf(*channel, local); !owner.empty()) return owner;
  }
  if (use == AddressUse::kListen) {
    return absl::UnavailableError(absl::StrCat(
        "no RDMA device has the address ", address.ToString(),
        ": with several devices a server listens at an address of each (`rdma link` lists them)"));
  }
  return absl::UnavailableError(absl::StrCat(
      "no RDMA device is on the way to ", address.ToString(),
      ": its route leaves by a network interface without one (`rdma link` lists them)"));
}

}  // namespace verbena
