# SPDX-License-Identifier: Apache-2.0
"""verbena_cc_library: a C++ library of messages, stubs and services from .proto files."""

VerbenaProtoInfo = provider(
    doc = "What protoc needs to know of the .proto files of a verbena_cc_library.",
    fields = {
        "sources": "depset of File: the .proto files of the library and of its deps, transitively",
        "import_paths": "depset of string: the folders that these files are imported relative to",
    },
)

def _import_path(src):
    """The folder below which protoc finds `src`: the workspace, or where Bazel puts outputs."""
    path = "/".join([p for p in [src.root.path, src.owner.workspace_root] if p])
    return path or "."

def _import_name(src):
    """How `src` is imported: "dir/x.proto", whether it is a file of the workspace or an output."""
    path = src.short_path
    if path.startswith("../"):  # "../<external workspace>/dir/x.proto"
        path = path.split("/", 2)[2]
    return path

def _check_source(ctx, src):
    if src.extension != "proto":
        fail(("%s: srcs of verbena_cc_library are .proto files, and %s is not one. Put C++ files " +
              "in a cc_library that depends on this target.") % (ctx.label, src.short_path))
    if src.owner.package != ctx.label.package or src.owner.workspace_name != ctx.label.workspace_name:
        fail(("%s: %s belongs to package %s, and the code of a .proto file is generated in its own " +
              "package. Make a verbena_cc_library there and put it in deps.") %
             (ctx.label, src.owner, src.owner.package or "//"))

def _verbena_proto_gen_impl(ctx):
    messages = []
    services = []
    for src in ctx.files.srcs:
        _check_source(ctx, src)

        # Next to the .proto file, so that a header's path is the import's.
        path = _import_name(src)[len(ctx.label.package):].lstrip("/")
        stem = path[:-len(".proto")]
        for extension in [".h", ".cc"]:
            messages.append(ctx.actions.declare_file(stem + ".pb" + extension))
            services.append(ctx.actions.declare_file(stem + ".verbena" + extension))

    deps = [dep[VerbenaProtoInfo] for dep in ctx.attr.deps]
    info = VerbenaProtoInfo(
        sources = depset(ctx.files.srcs, transitive = [dep.sources for dep in deps]),
        import_paths = depset(
            [_import_path(src) for src in ctx.files.srcs],
            transitive = [dep.import_paths for dep in deps],
        ),
    )

    out = "/".join([p for p in [ctx.bin_dir.path, ctx.label.workspace_root] if p])
    args = ctx.actions.args()
    args.add_all(info.import_paths, format_each = "-I%s")
    args.add(ctx.file._options.path[:-len("/verbena/options.proto")], format = "-I%s")
    args.add(ctx.executable._plugin, format = "--plugin=protoc-gen-verbena=%s")
    args.add(out, format = "--cpp_out=%s")
    args.add(out, format = "--verbena_out=%s")
    args.add_all([_import_name(src) for src in ctx.files.srcs])
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = depset([ctx.file._options], transitive = [info.sources]),
        outputs = messages + services,
        tools = [ctx.executable._plugin],
        mnemonic = "VerbenaProtoc",
        progress_message = "Generating C++ of %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset(messages + services)),
        OutputGroupInfo(verbena = depset(services)),
        info,
    ]

_verbena_proto_gen = rule(
    implementation = _verbena_proto_gen_impl,
    doc = "Runs protoc with Verbena's plugin.",
    attrs = {
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "deps": attr.label_list(providers = [VerbenaProtoInfo]),
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
        ctx.attr.gen[VerbenaProtoInfo],
    ]

# What the user's target is: the C++ library for C++ rules, and the .proto files for the deps of
# another verbena_cc_library. Thus nobody derives one target's label from another's.
_verbena_library = rule(
    implementation = _verbena_library_impl,
    doc = "A C++ library that remembers which .proto files it comes from.",
    attrs = {
        "cc_library": attr.label(providers = [CcInfo], mandatory = True),
        "gen": attr.label(providers = [VerbenaProtoInfo], mandatory = True),
    },
    provides = [CcInfo, VerbenaProtoInfo],
)

def verbena_cc_library(name, srcs, deps = [], visibility = None):
    """Generates C++ from .proto files and makes it a library.

    For dir/greeter.proto the library has "dir/greeter.pb.h" (messages) and "dir/greeter.verbena.h"
    (stubs and services), included by these paths from the workspace's root, as the .proto file is
    imported: `import "dir/greeter.proto";`. Protobuf's own files (google/protobuf/*.proto) and
    Verbena's "verbena/options.proto" can be imported without a dependency. The runtime is linked
    without being named.

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
        The targets <name>_gen and <name>_cc are its private parts.
      srcs: The .proto files, at least one, all of this package; with or without services.
      deps: verbena_cc_library targets whose .proto files are imported here.
      visibility: As in every rule; the default is the package's.
    """
    if type(srcs) != "list" or not srcs:
        fail("verbena_cc_library %s: srcs is a list of at least one .proto file, as in " % name +
             "srcs = [\"greeter.proto\"]")
    _verbena_proto_gen(
        name = name + "_gen",
        srcs = srcs,
        tags = ["manual"],  # Built as a part of <name>, not by "//...".
        deps = deps,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name + "_cc",
        srcs = [name + "_gen"],
        hdrs = [name + "_gen"],
        linkstatic = True,
        tags = ["manual"],
        deps = deps + [
            Label("//codegen/proto:options"),
            Label("//rpc:verbena"),
            Label("//third_party:protobuf"),
        ],
        visibility = ["//visibility:private"],
    )
    _verbena_library(
        name = name,
        cc_library = name + "_cc",
        gen = name + "_gen",
        visibility = visibility,
    )
