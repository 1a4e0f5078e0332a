#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a test of generated code: all sources of one seed in one translation unit.

usage: write_unity.py ROOT MESSAGES FILE...    to stdout

FILE are manifests (.json) and the generated .verbena.{h,cc} files, below ROOT. MESSAGES is a header
that includes what protoc and flatc wrote, whose warnings are not ours. That the unit compiles
without a warning
is half of the test. The other half: each service class has the methods that the manifests say, by
the names that the schema says. The C++ names of the classes are taken from the headers, so that the
rules for them are not written down a second time here.
"""

import json
import re
import sys

NAMESPACE = re.compile(r"^namespace (\S+) \{|^\}  // namespace ", re.MULTILINE)
SERVICE = re.compile(r"^class (\w+) final \{\s+public:\s+static constexpr ::std::string_view "
                     r'service_full_name =\s+"([^"]+)";', re.MULTILINE)


def cpp_classes(text):
    """{"a.b.Greeter": "::a::b::Greeter"} of the text of a generated header."""
    classes = {}
    for service in SERVICE.finditer(text):
        # The last namespace that is opened before it, unless it is closed before it too.
        namespaces = [found.group(1) for found in NAMESPACE.finditer(text, 0, service.start())]
        opened = "::" + namespaces[-1] if namespaces and namespaces[-1] else ""
        classes[service.group(2)] = "%s::%s" % (opened, service.group(1))
    return classes


def quoted(names):
    return ", ".join('"%s"' % name for name in names)


def main():
    root, messages, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    services = []
    classes = {}
    for path in files:
        if path.endswith(".json"):
            with open(path, encoding="utf-8") as file:
                services += json.load(file)
        if path.endswith(".verbena.h"):
            with open(path, encoding="utf-8") as file:
                classes.update(cpp_classes(file.read()))
    missing = [s["full_name"] for s in services if s["full_name"] not in classes]
    if missing:
        sys.exit("write_unity.py: no class was generated for %s" % ", ".join(missing))

    print("// Written by write_unity.py. Do not edit.\n")
    print('#include "%s"\n' % messages)
    for path in files:
        if path.endswith(".cc"):
            print('#include "%s"' % path[len(root) + 1:])
    print('\n#include "tests/codegen/corpus/torture/expect_methods.h"\n')
    print("TEST(Torture, ServicesHaveTheMethodsOfTheSchema) {")
    for service in services:
        unary = [m["name"] for m in service["methods"] if not m["streaming"]]
        streaming = [m["name"] for m in service["methods"] if m["streaming"]]
        print('  verbena_torture::ExpectMethods<%s>(\n      "%s", {%s},\n      {%s});' % (
            classes[service["full_name"]], service["full_name"], quoted(unary), quoted(streaming)))
    print("}")


if __name__ == "__main__":
    main()
