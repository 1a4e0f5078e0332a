# SPDX-License-Identifier: Apache-2.0
"""verbena_cc_library: a C++ library of messages, stubs and services from .proto and .fbs files."""

VerbenaSchemaInfo = provider(
    doc = "What protoc and verbena-flatc need to know of the schemas of a verbena_cc_library.",
    fields = {
        "sources": "depset of File: the schemas of the library and of its deps, transitively",
        "import_paths": "depset of string: the folders that these files are imported relative to",
    },
)

def _import_path(src):
    """The folder below which `src` is imported: the workspace, or where Bazel puts outputs."""
    path = "/".join([p for p in [src.root.path, src.owner.workspace_root] if p])
    return path or "."

def _import_name(src):
    """How `src` is imported: "dir/x.fbs", whether it is a file of the workspace or an output."""
    path = src.short_path
    if path.startswith("../"):  # "../<external workspace>/dir/x.fbs"
        path = path.split("/", 2)[2]
    return path

def _check_source(ctx, src):
    if src.extension not in ["fbs", "proto"]:
        fail(("%s: srcs of verbena_cc_library are .proto and .fbs files, and %s is neither. Put " +
              "C++ files in a cc_library that depends on this target.") %
             (ctx.label, src.short_path))
    if src.owner.package != ctx.label.package or src.owner.workspace_name != ctx.label.workspace_name:
        fail(("%s: %s belongs to package %s, and the code of a schema is generated in its own " +
              "package. Make a verbena_cc_library there and put it in deps.") %
             (ctx.label, src.owner, src.owner.package or "//"))

def _declare(ctx, src, extensions):
    """Outputs next to the schema, so that a header's path is the import's."""
    path = _import_name(src)[len(ctx.label.package):].lstrip("/")
    stem = path[:-len("." + src.extension)]
    return [ctx.actions.declare_file(stem + extension) for extension in extensions]

def _run_protoc(ctx, srcs, info, out, outputs):
    args = ctx.actions.args()
    args.add_all(info.import_paths, format_each = "-I%s")
    args.add(ctx.file._options.path[:-len("/verbena/options.proto")], format = "-I%s")
    args.add(ctx.executable._plugin, format = "--plugin=protoc-gen-verbena=%s")
    args.add(out, format = "--cpp_out=%s")
    args.add(out, format = "--verbena_out=mocks:%s" if ctx.attr.mocks else "--verbena_out=%s")
    args.add_all([_import_name(src) for src in srcs])
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = depset([ctx.file._options], transitive = [info.sources]),
        outputs = outputs,
        tools = [ctx.executable._plugin],
        mnemonic = "VerbenaProtoc",
        progress_message = "Generating C++ of %s" % ctx.label,
    )

def _run_flatc(ctx, srcs, info, out, outputs):
    args = ctx.actions.args()
    args.add_all(info.import_paths, format_each = "-I%s")
    args.add(ctx.executable._flatc, format = "--flatc=%s")
    args.add(out, format = "--cpp_out=%s")
    args.add(out, format = "--verbena_out=%s")
    if ctx.attr.mocks:
        args.add("--mocks")
    args.add_all(srcs)
    ctx.actions.run(
        executable = ctx.executable._verbena_flatc,
        arguments = [args],
        inputs = info.sources,
        outputs = outputs,
        tools = [ctx.executable._flatc],
        mnemonic = "VerbenaFlatc",
        progress_message = "Generating C++ of %s" % ctx.label,
    )

def _verbena_gen_impl(ctx):
    for src in ctx.files.srcs:
        _check_source(ctx, src)
    deps = [dep[VerbenaSchemaInfo] for dep in ctx.attr.deps]
    info = VerbenaSchemaInfo(
        sources = depset(ctx.files.srcs, transitive = [dep.sources for dep in deps]),
        import_paths = depset(
            [_import_path(src) for src in ctx.files.srcs],
            transitive = [dep.import_paths for dep in deps],
        ),
    )
    out = "/".join([p for p in [ctx.bin_dir.path, ctx.label.workspace_root] if p])
    messages = []
    services = []
    mocks = []
    for extension, message_extensions, run in [
        ("fbs", ["_generated.h"], _run_flatc),
        ("proto", [".pb.h", ".pb.cc"], _run_protoc),
    ]:
        srcs = [src for src in ctx.files.srcs if src.extension == extension]
        outputs = []
        for src in srcs:
            message_files = _declare(ctx, src, message_extensions)
            service_files = _declare(ctx, src, [".verbena.h", ".verbena.cc"])
            mock_files = _declare(ctx, src, ["_mock.verbena.h"] if ctx.attr.mocks else [])
            messages += message_files
            services += service_files
            mocks += mock_files
            outputs += message_files + service_files + mock_files
        if srcs:
            run(ctx, srcs, info, out, outputs)
    return [
        DefaultInfo(files = depset(messages + services)),
        OutputGroupInfo(mocks = depset(mocks), verbena = depset(services + mocks)),
        info,
    ]

_verbena_gen = rule(
    implementation = _verbena_gen_impl,
    doc = "Runs protoc with Verbena's plugin, and verbena-flatc.",
    attrs = {
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "deps": attr.label_list(providers = [VerbenaSchemaInfo]),
        "mocks": attr.bool(),
        "_flatc": attr.label(
            default = "//third_party:flatc",
            executable = True,
            cfg = "exec",
        ),
        "_options": attr.label(
            default = "//codegen/proto:verbena/options.proto",
            allow_single_file = True,
        ),
        "_plugin": attr.label(
            default = "//codegen:protoc_gen_verbena",
            executable = True,
            cfg = "exec",
        ),
        "_protoc": attr.label(
            default = "//third_party:protoc",
            executable = True,
            cfg = "exec",
        ),
        "_verbena_flatc": attr.label(
            default = "//codegen:verbena_flatc",
            executable = True,
            cfg = "exec",
        ),
    },
)

def _verbena_library_impl(ctx):
    cc = ctx.attr.cc_library

    # A cc_library that is asked for by name is built twice, with and without -fPIC. Who links it
    # asks for what it needs, and here one will do.
    files = cc[DefaultInfo].files.to_list()
    files = [file for file in files if not file.basename.endswith(".pic.a")] or files
    return [
        DefaultInfo(files = depset(files), runfiles = cc[DefaultInfo].default_runfiles),
        cc[CcInfo],
        ctx.attr.gen[VerbenaSchemaInfo],
    ]

# What the user's target is: the C++ library for C++ rules, and the schemas for the deps of
# another verbena_cc_library. Thus nobody derives one target's label from another's.
_verbena_library = rule(
    implementation = _verbena_library_impl,
    doc = "A C++ library that remembers which schemas it comes from.",
    attrs = {
        "cc_library": attr.label(providers = [CcInfo], mandatory = True),
        "gen": attr.label(providers = [VerbenaSchemaInfo], mandatory = True),
    },
    provides = [CcInfo, VerbenaSchemaInfo],
)

def _has(srcs, extension):
    """Whether a file with `extension` may be among `srcs`: what another rule writes may be one."""
    return bool([src for src in srcs if src.endswith(extension) or not _is_schema(src)])

def _is_schema(src):
    return src.endswith(".fbs") or src.endswith(".proto")

def verbena_cc_library(name, srcs, deps = [], mocks = False, tags = [], visibility = None):
    """Generates C++ from .proto and .fbs files and makes it a library.

    For dir/greeter.proto the library has "dir/greeter.pb.h" (messages) and "dir/greeter.verbena.h"
    (stubs and services); for dir/monster.fbs it has "dir/monster_generated.h" and
    "dir/monster.verbena.h". They are included by these paths from the workspace's root, as the
    schema is imported: `import "dir/greeter.proto";`, `include "dir/monster.fbs";`. Protobuf's own
    files (google/protobuf/*.proto) and Verbena's "verbena/options.proto" can be imported without a
    dependency. The runtime is linked without being named.

        load("//codegen:verbena_cc_library.bzl", "verbena_cc_library")

        verbena_cc_library(
            name = "greeter",
            srcs = ["greeter.proto"],
        )

        cc_binary(
            name = "server",
            srcs = ["server.cc"],
            deps = [":greeter"],
        )

    Args:
      name: The library: goes into `deps` of C++ rules and of other verbena_cc_library targets.
        The targets <name>_gen, <name>_cc and <name>_mock_gen are its private parts.
      srcs: The .proto and .fbs files, at least one, all of this package; with or without services.
        Both in one library is fine; dir/x.proto beside dir/x.fbs is not, as both are
        "dir/x.verbena.h".
      deps: verbena_cc_library targets whose schemas are imported here.
      mocks: Also make <name>_mock, a library for tests with "dir/greeter_mock.verbena.h" and
        "dir/monster_mock.verbena.h": GoogleMock's mocks of the stubs. It has this library and
        GoogleMock with it.
      tags: As in every rule; of <name> and <name>_mock.
      visibility: As in every rule; the default is the package's. Also of <name>_mock.
    """
    if type(srcs) != "list" or not srcs:
        fail("verbena_cc_library %s: srcs is a list of at least one .proto or .fbs file, " % name +
             "as in srcs = [\"greeter.proto\"]")
    _verbena_gen(
        name = name + "_gen",
        srcs = srcs,
        mocks = mocks,
        tags = ["manual"],  # Built as a part of <name>, not by "//...".
        deps = deps,
        visibility = ["//visibility:private"],
    )
    runtime = [Label("//rpc:verbena")]
    if _has(srcs, ".fbs"):
        runtime += [Label("//rpc:flatbuffers")]
    if _has(srcs, ".proto"):
        runtime += [Label("//codegen/proto:options"), Label("//third_party:protobuf")]
    native.cc_library(
        name = name + "_cc",
        srcs = [name + "_gen"],
        hdrs = [name + "_gen"],
        linkstatic = True,
        tags = ["manual"],
        deps = deps + runtime,
        visibility = ["//visibility:private"],
    )
    _verbena_library(
        name = name,
        cc_library = name + "_cc",
        gen = name + "_gen",
        tags = tags,
        visibility = visibility,
    )
    if mocks:
        native.filegroup(
            name = name + "_mock_gen",
            srcs = [name + "_gen"],
            output_group = "mocks",
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
        native.cc_library(
            name = name + "_mock",
            testonly = True,
            hdrs = [name + "_mock_gen"],
            tags = tags,
            deps = [name + "_cc", Label("//third_party:gtest")],
            visibility = visibility,
        )
