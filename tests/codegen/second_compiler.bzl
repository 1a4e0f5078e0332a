# SPDX-License-Identifier: Apache-2.0
"""Compiles sources with the second compiler, clang++-16: that it builds is the test."""

_COMMAND = """
if ! command -v clang++-16 >/dev/null; then
  echo "$0: SKIPPED: no clang++-16; install Debian's package clang-16." >&2
  touch "$1" && exit 0
fi
out="$1"
shift
clang++-16 -std=c++20 -fsyntax-only "$@" && touch "$out"
"""

def _second_compiler_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    outputs = []
    for src in ctx.files.srcs:
        out = ctx.actions.declare_file("%s/%s.ok" % (ctx.label.name, src.basename))
        args = ctx.actions.args()
        args.add(out)
        args.add_all(ctx.attr.copts)
        args.add_all(context.quote_includes, before_each = "-iquote")
        args.add_all(context.includes, before_each = "-I")
        args.add_all(context.system_includes, before_each = "-isystem")
        args.add(src)
        ctx.actions.run_shell(
            command = _COMMAND,
            arguments = [args],
            inputs = depset([src], transitive = [context.headers]),
            outputs = [out],
            mnemonic = "SecondCompiler",
            progress_message = "Compiling %s with clang++-16" % src.short_path,
        )
        outputs.append(out)
    return [DefaultInfo(files = depset(outputs))]

second_compiler = rule(
    implementation = _second_compiler_impl,
    doc = "Checks that `srcs` compile with clang++-16; does nothing where there is none.",
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "srcs": attr.label_list(allow_files = True),
    },
)
