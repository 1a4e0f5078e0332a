// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/factory.h"

#include <utility>

#include "verbena/transport/soft/device_impl.h"

namespace verbena {

absl::StatusOr<std::unique_ptr<Device>> CreateSoftDevice(const SoftDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<soft::SoftDevice>> device =
      soft::SoftDevice::Create(/*membarrier_wanted=*/!options.fence_every_send);
  if (!device.ok()) return device.status();
  return *std::move(device);
}

}  // namespace verbena
