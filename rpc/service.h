// SPDX-License-Identifier: Apache-2.0
//
// The base of generated service classes: a list of methods with their handlers.
//
// Lifetime: a registered service must outlive its server. Threads: handlers run on the server's
// pollers (several at once if there are several) or on the user's executor.

#pragma once

#include <vector>

#include "absl/status/status.h"
#include "verbena/rpc/method.h"
#include "verbena/rpc/server_context.h"

namespace verbena {

class Service {
 public:
  // Calls the virtual function of the generated class; `request` and `response` are of the types
  // that the method's codecs know.
  using Handler = absl::Status (*)(Service* service, ServerContext* context, const void* request,
                                   void* response);
  struct Method {
    const MethodDescriptor* descriptor;
    Handler handler;
  };

  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::vector<Method>& verbena_methods() const { return methods_; }

 protected:
  Service() = default;
  // `descriptor` has static storage. Called by the generated constructor.
  void AddVerbenaMethod(const MethodDescriptor* descriptor, Handler handler) {
    methods_.push_back({descriptor, handler});
  }

 private:
  std::vector<Method> methods_;
};

}  // namespace verbena
