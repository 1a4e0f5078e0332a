// SPDX-License-Identifier: Apache-2.0
//
// A service whose messages are text, without generated code. The bytes 0xff are "not a message", so
// that tests can send garbage.

#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "verbena/rpc/method.h"
#include "verbena/rpc/service.h"

namespace verbena {

inline constexpr Codec kTextCodec = {
    .byte_size = [](const void* message) {
      return static_cast<const std::string*>(message)->size();
    },
    .write =
        [](const void* message, std::span<std::byte> to) {
          const auto& text = *static_cast<const std::string*>(message);
          std::transform(text.begin(), text.end(), to.begin(),
                         [](char c) { return static_cast<std::byte>(c); });
        },
    .parse =
        [](void* message, std::span<const std::byte> from) {
          if (std::find(from.begin(), from.end(), std::byte{0xff}) != from.end()) return false;
          static_cast<std::string*>(message)->assign(reinterpret_cast<const char*>(from.data()),
                                                     from.size());
          return true;
        },
    .create = []() -> void* { return new std::string; },
    .destroy = [](void* message) { delete static_cast<std::string*>(message); },
    .clear = [](void* message) { static_cast<std::string*>(message)->clear(); },
};

inline constexpr MethodDescriptor kTextMethod("test.Text/Call", &kTextCodec, &kTextCodec);

class TextService final : public Service {
 public:
  using Function =
      std::function<absl::Status(ServerContext*, const std::string& request, std::string* response)>;

  // Without a function it answers with the request.
  explicit TextService(Function function = Echo) : function_(std::move(function)) {
    AddVerbenaMethod(&kTextMethod, [](Service* service, ServerContext* context, const void* request,
                                      void* response) {
      return static_cast<TextService*>(service)->function_(
          context, *static_cast<const std::string*>(request), static_cast<std::string*>(response));
    });
  }

 private:
  static absl::Status Echo(ServerContext*, const std::string& request, std::string* response) {
    *response = request;
    return absl::OkStatus();
  }

  Function function_;
};

}  // namespace verbena
