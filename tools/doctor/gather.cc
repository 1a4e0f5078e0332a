// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/doctor/gather.h"

#include "verbena/tools/doctor/host.h"
#include "verbena/tools/doctor/netdevs.h"
#include "verbena/tools/doctor/sysfs_devices.h"
#include "verbena/tools/doctor/verbs_probe.h"

namespace verbena::doctor {
namespace {

// Vendor ids of the kernel's software devices: rxe (rxe_param.h), siw (siw_main.c). The latter lies
// on the PCI device of its net device, and looks like hardware otherwise.
constexpr uint32_t kRxeVendor = 0xffffff;
constexpr uint32_t kSiwVendor = 0x626d74;

void AddVerbs(DeviceFacts* device) {
  device->verbs = ProbeVerbs(device->name);
  const uint32_t vendor = device->verbs.vendor_id;
  device->software = device->software || vendor == kRxeVendor || vendor == kSiwVendor;
  Capability& ordering = device->verbs.capabilities.relaxed_ordering;
  if (device->software && ordering.support == Support::kYes) {
    ordering = {Support::kNo, "no PCI Express below it"};
  }
  for (PortFacts& port : device->ports) {
    for (const PortAttributes& attributes : device->verbs.ports) {
      if (attributes.number != port.number) continue;
      port.mtu_active_bytes = attributes.mtu_active_bytes;
      port.mtu_max_bytes = attributes.mtu_max_bytes;
      port.message_bytes_max = attributes.message_bytes_max;
    }
  }
}

}  // namespace

Facts GatherFromFiles(const Roots& roots) {
  Facts facts;
  facts.host = ReadHost(roots);
  facts.devices = ReadSysfsDevices(roots);
  facts.netdevs = ReadSysfsNetdevs(roots);
  return facts;
}

Facts Gather() {
  Facts facts = GatherFromFiles(Roots());
  ReadMemlock(&facts.host);
  facts.host.addresses = ReadAddresses();
  for (NetdevFacts& netdev : facts.netdevs) AskNetdev(&netdev);
  for (DeviceFacts& device : facts.devices) AddVerbs(&device);
  // Without devices the two libraries have nothing to say, and load nothing.
  if (facts.devices.empty()) return facts;
  facts.host.fork = ProbeFork();
  facts.host.routes = ProbeAddresses(facts.host.addresses);
  return facts;
}

}  // namespace verbena::doctor
