// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/conditions.h"

#include <stdio.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "flatbuffers/flatbuffers.h"
#include "google/protobuf/stubs/common.h"

#if defined(__SANITIZE_ADDRESS__)
#define VERBENA_BENCH_SANITIZER "+asan"
#elif defined(__SANITIZE_THREAD__)
#define VERBENA_BENCH_SANITIZER "+tsan"
#else
#define VERBENA_BENCH_SANITIZER ""
#endif

namespace verbena::bench {
namespace {

std::string OutputOf(const char* command) {
  std::string output;
  FILE* pipe = popen(command, "re");
  if (pipe == nullptr) return output;
  char buffer[256];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  pclose(pipe);
  absl::StripAsciiWhitespace(&output);
  return output;
}

// The commit of the checkout that we are in, if it is one of this project.
std::string VerbenaVersion() {
  std::string top = OutputOf("git rev-parse --show-toplevel 2>/dev/null");
  if (top.empty() || !std::ifstream(top + "/tools/rpc_bench/bench.proto").good()) return "unknown";
  std::string commit = OutputOf("git describe --always --dirty 2>/dev/null");
  return commit.empty() ? "unknown" : commit;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    size_t colon = line.find(':');
    if (colon != std::string::npos) {
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "unknown";
}

}  // namespace

Conditions GatherConditions() {
  Conditions conditions;
  conditions.cpu_model = CpuModel();
  utsname host;
  conditions.kernel = uname(&host) == 0 ? absl::StrCat(host.sysname, " ", host.release) : "unknown";
#if defined(NDEBUG) && defined(__OPTIMIZE__)
  conditions.build_mode = "opt" VERBENA_BENCH_SANITIZER;
#else
  conditions.build_mode = "dbg" VERBENA_BENCH_SANITIZER;
#endif
  conditions.verbena_version = VerbenaVersion();
  conditions.compiler = "g++ " __VERSION__;
  conditions.flatbuffers_version = absl::StrCat(FLATBUFFERS_VERSION_MAJOR, ".", FLATBUFFERS_VERSION_MINOR, ".",
                                                FLATBUFFERS_VERSION_REVISION);
  conditions.protobuf_version = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  return conditions;
}

}  // namespace verbena::bench
