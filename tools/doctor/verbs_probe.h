// SPDX-License-Identifier: Apache-2.0
//
// What libibverbs and librdmacm say: the only files that call them are verbs_probe.cc,
// capability_probe.cc and address_probe.cc. Nothing here fails: what does not work is a fact. One
// thread.

#pragma once

#include <string>
#include <vector>

#include "verbena/tools/doctor/facts.h"

struct ibv_context;
struct ibv_device_attr_ex;

namespace verbena::doctor {

// Opens the device, tries things, closes it.
VerbsFacts ProbeVerbs(const std::string& device);

// Creates queue pairs and other objects on an open device, each once, and destroys them.
void ProbeCapabilities(ibv_context* context, const ibv_device_attr_ex& attributes,
                       VerbsFacts* verbs);

// Whether fork() is safe after verbs were used.
ForkState ProbeFork();

// Binds each address at the connection manager and sees which device that takes. Loopback and IPv6
// link-local addresses are left out.
std::vector<AddressRoute> ProbeAddresses(const std::vector<LocalAddress>& addresses);

}  // namespace verbena::doctor
