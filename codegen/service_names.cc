// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/service_names.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbena/codegen/names.h"

namespace verbena::codegen {
namespace {

void NameMethods(ServiceModel& service) {
  std::vector<std::string> names;
  for (const MethodModel& method : service.methods) names.push_back(method.name);
  const std::vector<std::string> cpp_names = CppNames(NameKind::kMethod, names, {});
  for (size_t i = 0; i < cpp_names.size(); ++i) service.methods[i].cpp_name = cpp_names[i];
}

absl::Status CheckDifferent(const std::vector<ServiceModel*>& services, const std::string& path) {
  std::map<std::string, const ServiceModel*> seen;
  for (const ServiceModel* service : services) {
    const auto [first, is_new] = seen.emplace(service->name, service);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        WithPlace(path, service->line, service->column,
                  absl::StrCat("services ", first->second->full_name, " and ", service->full_name,
                               " would both be ::", service->cpp_namespace, "::", service->name,
                               "; leave out the option namespace, or rename one of them")));
  }
  return absl::OkStatus();
}

void NameInOneNamespace(const std::vector<ServiceModel*>& services, std::set<std::string> taken) {
  std::vector<std::string> names;
  for (const ServiceModel* service : services) names.push_back(service->name);
  const std::vector<std::string> cpp_names = CppNames(NameKind::kService, names, taken);
  taken.insert(cpp_names.begin(), cpp_names.end());
  std::vector<std::string> mocks;
  for (size_t i = 0; i < services.size(); ++i) {
    services[i]->cpp_name = cpp_names[i];
    mocks.push_back(absl::StrCat("Mock", names[i], "Stub"));
    mocks.push_back(absl::StrCat("Mock", names[i], "Async"));
  }
  mocks = CppNames(NameKind::kOther, mocks, taken);
  for (size_t i = 0; i < services.size(); ++i) {
    services[i]->mock_stub_name = mocks[2 * i];
    services[i]->mock_async_name = mocks[2 * i + 1];
  }
}

}  // namespace

std::string WithPlace(const std::string& file, int line, int column, const std::string& message) {
  if (line == 0) return absl::StrCat(file, ": ", message);
  return absl::StrCat(file, ":", line, ":", column, ": ", message);
}

absl::Status NameServices(
    const std::function<std::set<std::string>(const std::string& cpp_namespace)>& taken,
    ServiceFile& file) {
  std::map<std::string, std::vector<ServiceModel*>> by_namespace;
  for (ServiceModel& service : file.services) {
    NameMethods(service);
    by_namespace[service.cpp_namespace].push_back(&service);
  }
  for (const auto& [cpp_namespace, services] : by_namespace) {
    if (absl::Status s = CheckDifferent(services, file.source_path); !s.ok()) return s;
    NameInOneNamespace(services, taken(cpp_namespace));
  }
  return absl::OkStatus();
}

}  // namespace verbena::codegen
