#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A method that is called as any macro of generated headers' includes gives way to it.

usage: macro_names_test.py FLAGS PROTOC PLUGIN HEADER...

FLAGS is a file with -I flags. Prints what codegen/macro_names.cc lacks.
"""

import os
import re
import subprocess
import sys


def macros(flags, headers):
    """Those that are spelled like an ordinary name; with "__" in it, one is not."""
    text = "".join("#include \"%s\"\n" % header for header in headers)
    output = subprocess.run(["g++", "-std=c++20", "-dM", "-E", "-x", "c++", "@" + flags, "-"],
                            input=text, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    names = set(re.findall(r"^#define ([A-Za-z]\w*)", output.stdout, re.MULTILINE))
    return sorted(name for name in names if "__" not in name)


def generated_header(protoc, plugin, methods):
    folder = os.environ["TEST_TMPDIR"]
    lines = ["syntax = \"proto3\";", "package p;", "message M {}", "service S {"]
    lines += ["  rpc %s(M) returns (M);" % method for method in methods] + ["}", ""]
    with open(os.path.join(folder, "s.proto"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    subprocess.run([protoc, "-I" + folder, "--plugin=protoc-gen-verbena=" + plugin,
                    "--verbena_out=" + folder, "s.proto"], check=True)
    with open(os.path.join(folder, "s.verbena.h"), encoding="utf-8") as file:
        return file.read()


def main():
    flags, protoc, plugin = sys.argv[1:4]
    names = macros(flags, sys.argv[4:])
    # That it looks at the headers at all.
    assert {"LOG", "EINVAL", "EXPECT_EQ", "FLATBUFFERS_ASSERT"} <= set(names), names
    words = set(re.findall(r"\w+", re.sub(r"//.*", "", generated_header(protoc, plugin, names))))
    missing = [name for name in names if name in words]
    print("%d macros" % len(names))
    if missing:
        print("FAILED: to be added to codegen/macro_names.cc: " + " ".join(missing))
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
