// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/pci.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "verbena/base/unique_fd.h"
#include "verbena/tools/doctor/files.h"

namespace verbena::doctor {
namespace {

// Offsets and ids from linux/pci_regs.h.
constexpr size_t kStatus = 0x06;
constexpr uint8_t kStatusCapabilities = 0x10;
constexpr size_t kFirstCapability = 0x34;
constexpr uint8_t kExpressCapability = 0x10;
constexpr size_t kDeviceControl = 8;  // From the start of the capability.
constexpr uint8_t kRelaxedOrdering = 0x10;
// 256 bytes hold no more capabilities than this; a broken chain ends here.
constexpr int kCapabilitiesMax = 48;

std::string ReadConfig(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return "";
  std::string config(256, '\0');
  ssize_t bytes = read(fd.get(), config.data(), config.size());
  config.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return config;
}

}  // namespace

std::optional<bool> RelaxedOrdering(std::string_view config) {
  auto byte = [&](size_t at) { return static_cast<uint8_t>(config[at]); };
  if (config.size() < 0x40 || (byte(kStatus) & kStatusCapabilities) == 0) return std::nullopt;
  size_t at = byte(kFirstCapability) & ~size_t{3};
  for (int i = 0; i < kCapabilitiesMax && at >= 0x40; ++i) {
    if (at + kDeviceControl >= config.size()) return std::nullopt;
    if (byte(at) == kExpressCapability) return (byte(at + kDeviceControl) & kRelaxedOrdering) != 0;
    at = byte(at + 1) & ~size_t{3};
  }
  return std::nullopt;
}

std::optional<PciFacts> ReadPci(const std::string& folder) {
  if (LinkTargetName(folder + "/subsystem") != "pci") return std::nullopt;
  PciFacts pci;
  std::error_code error;
  pci.address = std::filesystem::canonical(folder, error).filename().string();
  if (!absl::SimpleAtoi(ReadText(folder + "/numa_node").value_or(""), &pci.numa_node)) {
    pci.numa_node = -1;
  }
  pci.link_speed = ReadText(folder + "/current_link_speed").value_or("");
  pci.link_speed_max = ReadText(folder + "/max_link_speed").value_or("");
  pci.link_width = static_cast<uint32_t>(ReadNumber(folder + "/current_link_width").value_or(0));
  pci.link_width_max = static_cast<uint32_t>(ReadNumber(folder + "/max_link_width").value_or(0));
  pci.relaxed_ordering = RelaxedOrdering(ReadConfig(folder + "/config"));
  return pci;
}

}  // namespace verbena::doctor
