// SPDX-License-Identifier: Apache-2.0
//
// doctor: see Usage().

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbena/tools/doctor/gather.h"
#include "verbena/tools/doctor/options.h"
#include "verbena/tools/doctor/report.h"

namespace verbena::doctor {
namespace {

int Main(int argc, char** argv) {
  absl::StatusOr<Options> options = ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "doctor: %s\n", options.status().ToString().c_str());
    return 2;
  }
  if (options->help) {
    std::fputs(Usage().c_str(), stdout);
    return 0;
  }
  const Diagnosis diagnosis = Diagnose(Gather(), options->family);
  const std::string report = options->json ? ReportJson(diagnosis) : ReportText(diagnosis);
  std::fputs(report.c_str(), stdout);
  return diagnosis.verdict.reason == Reason::kUsable ? 0 : 1;
}

}  // namespace
}  // namespace verbena::doctor

int main(int argc, char** argv) { return verbena::doctor::Main(argc, argv); }
