// SPDX-License-Identifier: Apache-2.0
//
// `rpc_bench serve`: a server until SIGINT or SIGTERM. Threads: the main one, before any other was
// started, because it blocks these signals for all that follow.

#pragma once

#include "absl/status/status.h"
#include "verbena/tools/rpc_bench/options.h"

namespace verbena::bench {

// Prints one line on standard output when clients may come. Errors: those of starting a server.
absl::Status Serve(const Options& options);

}  // namespace verbena::bench
