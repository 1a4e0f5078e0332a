# SPDX-License-Identifier: Apache-2.0
"""clang_syntax_test: generated code is checked by the second compiler."""

def _include_flags_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context

    # A test runs where sources and outputs are in one tree, as if all were sources.
    prefix = ctx.bin_dir.path + "/"
    folders = []
    for folder in depset(transitive = [
        context.includes,
        context.system_includes,
    ]).to_list():
        if folder.startswith(prefix):
            folders.append(folder[len(prefix):])
    flags = ctx.actions.declare_file(ctx.label.name + ".flags")
    ctx.actions.write(flags, "".join(["-I%s\n" % folder for folder in ["."] + folders]))
    return [DefaultInfo(
        files = depset([flags]),
        runfiles = ctx.runfiles([flags], transitive_files = context.headers),
    )]

include_flags = rule(
    implementation = _include_flags_impl,
    doc = "A file of -I flags for the headers of `deps`, which are its runfiles.",
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
)

def clang_syntax_test(name, deps, units = [], together = [], data = [], tags = []):
    """A test that clang accepts C++ files without a warning. Skipped where there is no clang.

    Args:
      name: The test.
      deps: The C++ libraries whose headers are included.
      units: .cc files that are compiled each by itself.
      together: Targets of generated files: their .cc files are compiled in one unit.
      data: Other files that these include.
      tags: As in every test.
    """
    include_flags(
        name = name + "_include",
        testonly = True,
        tags = ["manual"],
        deps = deps,
    )
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["clang_syntax_test.sh"],
        args = ["$(rootpath :%s_include)" % name] +
               ["--unit=$(rootpath %s)" % unit for unit in units] +
               ["$(rootpaths %s)" % target for target in together],
        data = [":%s_include" % name] + units + together + data,
        tags = tags,
    )
