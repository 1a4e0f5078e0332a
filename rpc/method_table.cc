// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/method_table.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace verbena {
namespace {

absl::string_view Name(const MethodDescriptor& descriptor) {
  return {descriptor.full_name.data(), descriptor.full_name.size()};
}

}  // namespace

absl::StatusOr<MethodTable> MethodTable::Build(std::span<Service* const> services) {
  if (services.empty()) {
    return absl::InvalidArgumentError(
        "the server has no service: call ServerBuilder::RegisterService first");
  }
  size_t count = 0;
  for (const Service* service : services) count += service->verbena_methods().size();
  MethodTable table;
  table.entries_.resize(std::bit_ceil(2 * count + 2));
  table.mask_ = table.entries_.size() - 1;
  for (Service* service : services) {
    for (const Service::Method& method : service->verbena_methods()) {
      const MethodDescriptor& descriptor = *method.descriptor;
      if (const MethodEntry* other = table.Find(descriptor.id)) {
        return absl::AlreadyExistsError(
            absl::StrCat(Name(descriptor), " and ", Name(*other->descriptor),
                         descriptor.full_name == other->descriptor->full_name
                             ? " are the same method: register each service once"
                             : " have the same identity on the wire: rename one of them"));
      }
      size_t at = descriptor.id & table.mask_;
      while (table.entries_[at].descriptor != nullptr) at = (at + 1) & table.mask_;
      table.entries_[at] = {descriptor.id, &descriptor, service, method.handler, table.size_++};
    }
  }
  return table;
}

}  // namespace verbena
