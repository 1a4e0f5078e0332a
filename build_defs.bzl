# SPDX-License-Identifier: Apache-2.0
"""C++ rules of this repository: the native ones with our include prefix and warnings.

Headers are included as "verbena/<package>/<file>.h" everywhere. A bare "rpc/..." would find the C
library's <rpc/rpc.h> headers. Only `hdrs` get the prefix, so a private header is listed in `hdrs`
of a library whose visibility is private.
"""

# Our own code is kept free of these warnings; they are not errors, so that a newer compiler
# still builds an old commit.
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
]

def vb_cc_library(name, srcs = [], hdrs = [], deps = [], copts = [], visibility = None, **kwargs):
    """cc_library whose headers are included as "verbena/<package>/<file>.h"."""
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = WARNINGS + copts,
        include_prefix = "verbena/" + native.package_name(),
        visibility = visibility,
        deps = deps,
        **kwargs
    )

def vb_cc_binary(name, srcs = [], deps = [], copts = [], visibility = None, **kwargs):
    """cc_binary with our warnings."""
    native.cc_binary(
        name = name,
        srcs = srcs,
        copts = WARNINGS + copts,
        visibility = visibility,
        deps = deps,
        **kwargs
    )

def vb_cc_test(
        name,
        srcs = [],
        deps = [],
        copts = [],
        size = "small",
        tags = [],
        linkstatic = True,
        **kwargs):
    """cc_test with GoogleTest, its main() and our warnings.

    Linked statically with our own libraries: as a shared object each would have to name every
    Abseil library that it needs, and Debian's are archives.

    Tags that tools/check knows: "noasan" and "notsan" leave the test out of that configuration.
    Bazel's own: "exclusive" runs it alone, "local" runs it outside the sandbox.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = WARNINGS + copts,
        tags = tags,
        linkstatic = linkstatic,
        deps = deps + ["//third_party:gtest_main"],
        **kwargs
    )
