// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/device_choice.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "verbena/transport/rdma/factory.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

// Devices that this process shares, by name; each ends with its last user.
class SharedDevices {
 public:
  template <class Make>
  absl::StatusOr<std::shared_ptr<Device>> Get(const std::string& name, Make make) {
    std::lock_guard lock(mutex_);
    std::weak_ptr<Device>& shared = devices_[name];
    if (std::shared_ptr<Device> device = shared.lock()) return device;
    absl::StatusOr<std::unique_ptr<Device>> made = make();
    if (!made.ok()) return made.status();
    std::shared_ptr<Device> device = *std::move(made);
    shared = device;
    return device;
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<Device>> devices_;  // Under mutex_.
};

SharedDevices& Shared() {
  // Never destroyed, so that channels may end during the exit of the process.
  static auto* shared = new SharedDevices;
  return *shared;
}

absl::Status NobodyServes(const Address& address, const std::string& asked) {
  return absl::UnavailableError(absl::StrCat("no device serves ", address.ToString(),
                                             " (asked: ", asked, "): add one that serves \"",
                                             address.scheme, ":\" to the options"));
}

absl::StatusOr<std::shared_ptr<Device>> SharedDeviceFor(const Address& address, AddressUse use) {
  if (address.scheme == "rdma") {
    absl::StatusOr<std::string> name = RdmaDeviceFor(address, use);
    if (!name.ok()) return name.status();
    return Shared().Get(*name, [&] { return CreateRdmaDevice({.device = *name}); });
  }
  auto device = Shared().Get("soft", [] { return CreateSoftDevice(); });
  if (device.ok() && !(*device)->ServesScheme(address.scheme)) {
    return NobodyServes(address, (*device)->capabilities().device);
  }
  return device;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> ChooseDevice(std::span<Device* const> devices,
                                                     const Address& address, AddressUse use) {
  if (devices.empty()) return SharedDeviceFor(address, use);
  std::string asked;
  for (Device* device : devices) {
    if (device->ServesScheme(address.scheme)) {
      return std::shared_ptr<Device>(device, [](Device*) {});
    }
    absl::StrAppend(&asked, asked.empty() ? "" : ", ", device->capabilities().device);
  }
  return NobodyServes(address, asked);
}

}  // namespace verbena
