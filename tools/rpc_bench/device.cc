// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/device.h"

#include "verbena/rpc/device_choice.h"

namespace verbena::bench {

absl::StatusOr<std::shared_ptr<Device>> OpenDevice(const std::string& address, AddressUse use) {
  absl::StatusOr<Address> parsed = Address::Parse(address);
  if (!parsed.ok()) return parsed.status();
  return ChooseDevice({}, *parsed, use);
}

PollOptions::Mode ToPollMode(Poll poll) {
  switch (poll) {
    case Poll::kAdaptive:
      return PollOptions::Mode::kAdaptive;
    case Poll::kBusy:
      return PollOptions::Mode::kBusy;
    case Poll::kEvent:
      return PollOptions::Mode::kEvent;
  }
  return PollOptions::Mode::kAdaptive;
}

}  // namespace verbena::bench
