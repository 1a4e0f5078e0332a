// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/device.h"

#include "absl/strings/str_cat.h"
#include "verbena/transport/address.h"
#include "verbena/transport/soft/factory.h"

namespace verbena::bench {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& address) {
  absl::StatusOr<Address> parsed = Address::Parse(address);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<std::unique_ptr<Device>> device = CreateSoftDevice();
  if (!device.ok()) return device;
  if (!(*device)->ServesScheme(parsed->scheme)) {
    return absl::UnavailableError(absl::StrCat("no device of this build serves ", address,
                                               "; the software device serves shm:NAME"));
  }
  return device;
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
