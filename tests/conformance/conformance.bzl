# SPDX-License-Identifier: Apache-2.0
"""The suite instantiated for one device.

Not a vb_cc_test, since the suite has a main() of its own: it is also its tests' peer.
"""

load("//:build_defs.bzl", "WARNINGS")

def conformance_test(name, srcs, deps, tags = [], shard_count = 2):
    """All tests of the suite on the device that `srcs` describe (device_under_test.h).

    Args:
      name: of the test.
      srcs: the device's file.
      deps: the device's factory.
      tags: as of any test.
      shard_count: how many processes share the tests.
    """
    native.cc_test(
        name = name,
        size = "medium",
        srcs = srcs,
        copts = WARNINGS,
        linkstatic = True,  # As vb_cc_test.
        shard_count = shard_count,
        tags = tags,
        deps = deps + ["//tests/conformance:suite"],
    )
