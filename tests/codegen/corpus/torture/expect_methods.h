// SPDX-License-Identifier: Apache-2.0
//
// What the units that write_unity.py writes call.

#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "verbena/rpc/verbena.h"

namespace verbena_torture {

using Names = std::set<std::string>;

// `Generated` is the class of a service of that name: it has `unary`, may have `streaming`, and
// nothing else. A stub can be made of it.
template <class Generated>
void ExpectMethods(std::string_view full_name, const Names& unary, const Names& streaming) {
  EXPECT_EQ(full_name, Generated::service_full_name);
  const std::string prefix = std::string(full_name) + "/";
  Names missing = unary;
  const typename Generated::Service service;
  for (const auto& method : service.verbena_methods()) {
    const std::string name(method.descriptor->full_name);
    EXPECT_TRUE(name.starts_with(prefix)) << name;
    const std::string method_name = name.substr(prefix.size());
    EXPECT_EQ(unary.count(method_name) + streaming.count(method_name), 1u) << name;
    missing.erase(method_name);
  }
  EXPECT_EQ(missing, Names());
  std::unique_ptr<typename Generated::StubInterface> stub =
      Generated::NewStub(verbena::CreateChannel("shm:nobody-listens-here"));
  EXPECT_NE(stub->async(), nullptr);
}

}  // namespace verbena_torture
