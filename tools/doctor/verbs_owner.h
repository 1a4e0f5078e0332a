// SPDX-License-Identifier: Apache-2.0
//
// VerbsOwner<ibv_qp, ibv_destroy_qp>: owns what libibverbs made, and gives it back.

#pragma once

#include <memory>

namespace verbena::doctor {

template <auto kGiveBack>
struct VerbsDeleter {
  template <class T>
  void operator()(T* object) const {
    kGiveBack(object);
  }
};

template <class T, auto kGiveBack>
using VerbsOwner = std::unique_ptr<T, VerbsDeleter<kGiveBack>>;

}  // namespace verbena::doctor
