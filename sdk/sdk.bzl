# SPDX-License-Identifier: Apache-2.0
"""What users of other build systems than Bazel need: one archive, and a folder like an installation."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _merged(deps):
    return cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in deps])

def _objects(linking_context):
    """The object files of all C++ libraries of this workspace. The system's are linker flags."""
    objects = []
    for linker_input in linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            # Those without -fPIC are what Bazel links into a program, so they are there already.
            # Debian's compiler makes them fit for position independent executables.
            objects += library.objects or library.pic_objects or []
    return objects

def _cc_static_archive_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    ar = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-link-static-library",
    )
    objects = _objects(_merged(ctx.attr.deps).linking_context)
    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    args = ctx.actions.args()

    # q, not r: two folders may each have a queue_pair.o, and both go in.
    args.add("qcsD")
    args.add(archive)
    args.add_all(objects)
    ctx.actions.run(
        executable = ar,
        arguments = [args],
        inputs = depset(objects, transitive = [toolchain.all_files]),
        outputs = [archive],
        mnemonic = "CcStaticArchive",
    )
    return [DefaultInfo(files = depset([archive]))]

cc_static_archive = rule(
    implementation = _cc_static_archive_impl,
    doc = "lib<name>.a: the objects of `deps` and of all that they depend on in this workspace.",
    attrs = {
        "deps": attr.label_list(mandatory = True, providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _headers(compilation_context):
    """{"verbena/rpc/verbena.h": File}: every header, by what users include."""
    folders = depset(transitive = [
        compilation_context.includes,
        compilation_context.system_includes,
    ]).to_list()
    headers = {}
    for header in compilation_context.headers.to_list():
        for folder in folders:
            if header.path.startswith(folder + "/verbena/"):
                headers[header.path[len(folder) + 1:]] = header
    return headers

def _sdk_tree_impl(ctx):
    sources = {}  # Path in the tree -> File.
    for name, header in _headers(_merged(ctx.attr.deps).compilation_context).items():
        sources["include/" + name] = header
    for target, path in ctx.attr.files.items():
        files = target[DefaultInfo].files.to_list()
        if len(files) != 1:
            fail("%s: %s is %d files, and one can be %s" % (ctx.label, target.label, len(files), path))
        sources[path] = files[0]
    tree = ctx.actions.declare_directory(ctx.label.name)
    args = ctx.actions.args()
    args.use_param_file("%s", use_always = True)
    args.set_param_file_format("multiline")
    for path, file in sources.items():
        args.add("%s=%s" % (path, file.path))
    ctx.actions.run_shell(
        arguments = [tree.path, args],
        command = """
set -eu
while IFS='=' read -r path file; do
  mkdir -p "$(dirname "$1/$path")"
  cp -L "$file" "$1/$path"
done <"$2"
""",
        inputs = sources.values(),
        outputs = [tree],
        mnemonic = "SdkTree",
        progress_message = "Copying %d files to %s" % (len(sources), tree.short_path),
    )
    return [DefaultInfo(files = depset([tree]), runfiles = ctx.runfiles([tree]))]

sdk_tree = rule(
    implementation = _sdk_tree_impl,
    doc = "A folder <name> with include/, where the headers of `deps` are, and with `files`.",
    attrs = {
        "deps": attr.label_list(mandatory = True, providers = [CcInfo]),
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "What else goes in, and its path there.",
        ),
    },
)
