// SPDX-License-Identifier: Apache-2.0
//
// Kinds of IP addresses, and so of GIDs. Any thread.

#pragma once

#include <string>

#include "verbena/tools/doctor/facts.h"

namespace verbena::doctor {

bool IsIpv4(const IpAddress& address);       // ::ffff:0:0/96
bool IsLinkLocal(const IpAddress& address);  // fe80::/10, 169.254.0.0/16
bool IsLoopback(const IpAddress& address);
// "10.1.0.1" or "fe80::1".
std::string ToText(const IpAddress& address);
// As a GID is written: "::ffff:10.1.0.1".
std::string GidText(const IpAddress& gid);
// Nothing but zeros when it is neither.
IpAddress ParseAddress(const std::string& text);

}  // namespace verbena::doctor
