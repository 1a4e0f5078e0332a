// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/device_choice.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbena/transport/soft/factory.h"

namespace verbena {
namespace {

absl::StatusOr<std::shared_ptr<Device>> SharedSoftDevice() {
  static std::mutex mutex;  // Constant-initialised and trivially destroyed.
  // Never destroyed, so that channels may end during the exit of the process.
  static auto* shared = new std::weak_ptr<Device>;
  std::lock_guard lock(mutex);
  if (std::shared_ptr<Device> device = shared->lock()) return device;
  auto made = CreateSoftDevice();
  if (!made.ok()) return made.status();
  std::shared_ptr<Device> device = *std::move(made);
  *shared = device;
  return device;
}

absl::Status NobodyServes(const Address& address, const std::string& asked) {
  return absl::UnavailableError(
      absl::StrCat("no device serves ", address.ToString(), " (asked: ", asked,
                   "): use a shm: address on one host, or add a device that serves \"",
                   address.scheme, ":\" to the options"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> ChooseDevice(std::span<Device* const> devices,
                                                     const Address& address) {
  if (devices.empty()) {
    auto device = SharedSoftDevice();
    if (device.ok() && !(*device)->ServesScheme(address.scheme)) {
      return NobodyServes(address, (*device)->capabilities().device);
    }
    return device;
  }
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
