# SPDX-License-Identifier: Apache-2.0
"""Schemas that a program writes from a seed, and the libraries and tests made of them."""

load("//:build_defs.bzl", "vb_cc_test")
load("//codegen:verbena_cc_library.bzl", "verbena_cc_library")

# A seed is 18 services in .proto files and 8 in .fbs files: 52 in every tools/check, 260 with
# --nightly. To compile one takes two cores about half a minute.
CHECK_SEEDS = [1, 2]
NIGHTLY_SEEDS = list(range(3, 11))

PROTOS = [
    "options.proto",
    "types.proto",
    "reexport.proto",
    "services.proto",
    "legacy.proto",
    "sub/leaf-v1.0.proto",
]

FBS = [
    "flat_base.fbs",
    "flat_middle.fbs",
    "sub/flat-leaf.v1.fbs",
]

# Warnings are errors, as in //tests/codegen:strict_warnings.
STRICT = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wshadow",
    "-Werror",
]

# Sanitizers have nothing to find here, and would compile all of it once more.
NO_SANITIZER = [
    "noasan",
    "notsan",
    "noubsan",
]

def count_services_test(name, seeds, minimum, tags = []):
    """That the libraries of `seeds` build, and have `minimum` services or more, of all kinds."""
    libraries = [":seed_%d" % seed for seed in seeds]
    files = [library + "_verbena" for library in libraries]
    files += ["seed_%d/%s" % (seed, file) for seed in seeds for file in PROTOS + FBS]
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["count_services_test.py"],
        args = [str(minimum)] + ["$(rootpaths %s)" % file for file in files],
        data = libraries + files,
        tags = tags + NO_SANITIZER,
    )

def torture_seed(seed, nightly):
    """Library seed_N and test seed_N_test of the schemas of seed N.

    Args:
      seed: A number.
      nightly: Whether only tools/check --nightly builds and runs them.
    """
    name = "seed_%d" % seed
    tags = ["manual", "nightly"] if nightly else []
    folder = native.package_name() + "/" + name
    manifests = [
        "manifest.json",
        "manifest_fbs.json",
    ]
    native.genrule(
        name = "write_" + name,
        srcs = [
            "comments.py",
            "exclusions.py",
            "proto_writer.py",
            "rng.py",
            "words.py",
            "write_fbs.py",
            "write_protos.py",
        ],
        outs = ["%s/%s" % (name, file) for file in PROTOS + FBS + manifests],
        cmd = "for program in $(location write_protos.py) $(location write_fbs.py); do " +
              "python3 -B $$program %d $(RULEDIR)/%s %s; done" % (seed, name, folder),
        tags = ["manual"],
    )
    verbena_cc_library(
        name = name,
        srcs = ["%s/%s" % (name, file) for file in PROTOS + FBS],
        tags = ["manual"],
    )
    native.filegroup(
        name = name + "_verbena",
        srcs = [name + "_gen"],
        output_group = "verbena",
        tags = ["manual"],
    )
    native.genrule(
        name = "write_%s_messages" % name,
        outs = [name + "_messages.h"],
        cmd = "\n".join(
            ["cat >$@ <<'H'", "#pragma GCC system_header"] +
            ["#include \"%s/%s.pb.h\"" % (folder, file[:-len(".proto")]) for file in PROTOS] +
            ["#include \"%s/%s_generated.h\"" % (folder, file[:-len(".fbs")]) for file in FBS] +
            ["H"],
        ),
        tags = ["manual"],
    )
    native.genrule(
        name = "write_%s_unity" % name,
        srcs = [
            "write_unity.py",
            ":%s_verbena" % name,
        ] + ["%s/%s" % (name, manifest) for manifest in manifests],
        outs = [name + "_unity.cc"],
        cmd = ("python3 -B $(location write_unity.py) $(BINDIR) %s_messages.h " +
               "$(location %s/manifest.json) $(location %s/manifest_fbs.json) " +
               "$(locations :%s_verbena) >$@") % (folder, name, name, name),
        tags = ["manual"],
    )

    vb_cc_test(
        name = name + "_test",
        srcs = [
            "expect_methods.h",
            name + "_messages.h",
            name + "_unity.cc",
        ],
        copts = STRICT,
        tags = tags + NO_SANITIZER,
        deps = [
            ":" + name,
            "//rpc:verbena",
        ],
    )
