#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That there are as many services as there should be, and of every kind of schema.

usage: count_services_test.py MINIMUM FILE...

FILE are schemas, and the headers generated from them. The libraries of them are built before this
runs.
"""

import re
import sys

# What schemas must have somewhere, by the end of their files' names.
KINDS = {
    ".proto": [
        r"^syntax = .proto2", r"^syntax = .proto3", r"^import public ",
        r"^import .google/protobuf/",
        r"\(\.verbena\.placement\) = PAYLOAD", r"^extend google\.protobuf\.MethodOptions",
        r"^ +option \(\.", r"^option \(\.", r"^ +oneof ", r"^ +map<", r" group ", r"^extend \.",
        r"^ +required ", r"\(stream ", r"returns \(stream ", r"deprecated = true", r"^ +\* ",
        r"^ *//.*\\$", r"^ *//.*\*/", r"^ *//.*/\*", "\u6f22", "^\ufeff",
        r"^service\s+\w+ \{\s*\}",
        r"^package .*\..*\..*\..*;",
    ],
    ".fbs": [
        r"^namespace .*\..*\..*;", r"^include ", r"streaming: \"client\"",
        r"streaming: \"server\"", r"streaming: \"bidi\"", r"= null", r"^union ", r"^struct ",
        r"force_align", r"bit_flags", r"nested_flatbuffer: ", r"^root_type ", r"^file_identifier ",
        r"\(id: ", r"required", r"^ *///", r"^ *//.*\\$", "\u6f22", "^\ufeff",
    ],
}


def main():
    minimum = int(sys.argv[1])
    texts = {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8", newline="") as file:
            texts[path] = file.read()

    names = []
    headers = [path for path in texts if path.endswith(".verbena.h")]
    for path in headers:
        names += re.findall(r'service_full_name =\s+"([^"]+)"', texts[path])
    print("%d services in %d generated headers" % (len(names), len(headers)))
    if len(names) < minimum:
        sys.exit("FAILED: there should be at least %d" % minimum)

    failed = False
    for ending, kinds in KINDS.items():
        schemas = [text for path, text in texts.items() if path.endswith(ending)]
        for kind in kinds:
            if not any(re.search(kind, text, re.MULTILINE) for text in schemas):
                print("FAILED: none of %d %s files has %s" % (len(schemas), ending, kind))
                failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
