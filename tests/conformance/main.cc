// SPDX-License-Identifier: Apache-2.0
//
// Runs the suite, or is the peer of one of its tests (peer.h).

#include <gmock/gmock.h>

#include <cstdlib>
#include <string_view>

#include "verbena/tests/conformance/peer.h"

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--peer") {
    return verbena::conformance::RunPeer(argv[2], std::atoi(argv[3]));
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
