#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What codegen/README.md lists as refused is refused, with file and line, whatever it is called.

usage: refused_test.py PROTOC PLUGIN OPTIONS_PROTO FLATC VERBENA_FLATC

Each case is a schema with awkward names around one declaration, which is marked HERE: that line is
the one that the error must name. No code may be written.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import exclusions  # noqa: E402
import words  # noqa: E402
from comments import CommentWriter  # noqa: E402
from rng import Random  # noqa: E402

SEEDS = range(1, 9)

# Those that protoc 3.21 writes as they are.
UNMANGLED = words.KEYWORDS_20 + ["EOF", "errno", "linux", "stderr", "unix"]
NOT_BYTES = ["string", "uint64", "repeated int32", "map<string, bytes>", ".%(package)s.Plain"]
# What flatc takes for something else than a name.
FLATC_GRAMMAR = ["bool", "double", "enum", "false", "float", "int", "long", "namespace", "short",
                 "struct", "true", "union"]
MARK = "(.verbena.placement) = PAYLOAD"


def proto_cases(rng):
    """[(what, {file: text})]; the last file is the one that protoc is asked to generate."""
    word = lambda place: rng.pick(exclusions.allowed(place))  # noqa: E731
    package = "r.%s" % word("package")
    head = "syntax = \"proto3\";\npackage %s;\nimport \"verbena/options.proto\";\n" % package
    head2 = head.replace("proto3", "proto2")
    plain = "message Plain {}\n"
    marked = "message Marked { bytes %s = 1 [%s]; }\n" % (word("payload_field"), MARK)
    field = word("payload_field")
    call = "service S {\n  rpc %s(.%s.%%s) returns (.%s.%%s); // HERE\n}\n" % (
        word("method"), package, package)

    def one(text):
        return {"x/schema.proto": text}

    def package_of(components):
        return one("syntax = \"proto3\";\n\npackage %s; // HERE\n" % components)

    reserved = rng.pick([each for each in words.KEYWORDS + words.KEYWORDS_20 + words.MACROS
                         if each != "assert"])
    unmangled = rng.pick(UNMANGLED)
    below = one(head + plain + marked + "message Holder { repeated Marked m = 1; }\n"
                "message Outer { map<int32, Holder> %s = 1; }\n" % field +
                call % (("Outer", "Plain") if rng.chance(50) else ("Plain", "Outer")))
    return [
        ("reserved package", package_of(rng.pick([reserved, "a." + reserved, reserved + ".a"]))),
        ("std below", package_of("a.std")),
        ("reserved message", one(head + plain + "message %s {}\n" % unmangled +
                                 call % rng.pick([(unmangled, "Plain"), ("Plain", unmangled)]))),
        ("generic services", one(head + "option cc_generic_services = true;\n" +
                                 "service %s {} // HERE\n" % word("service"))),
        ("payload of another type", one(
            head + plain + "message M {\n  %s %s = 1 [%s]; // HERE\n}\n" % (
                rng.pick(NOT_BYTES) % {"package": package}, field, MARK))),
        ("payload in a oneof", one(
            head + "message M { oneof o {\n  bytes %s = 1 [%s]; // HERE\n} }\n" % (field, MARK))),
        ("payload required", one(head2 + "message M {\n  required bytes %s = 1 [%s]; // HERE\n}\n" %
                                 (field, MARK))),
        ("payload with default", one(head2 + "message M {\n  optional bytes %s = 1 " % field +
                                     "[default = \"x\", %s]; // HERE\n}\n" % MARK)),
        ("payload extension", one(head2 + "message M { extensions 1 to 9; }\nextend M {\n" +
                                  "  optional bytes %s = 1 [%s]; // HERE\n}\n" % (field, MARK))),
        ("payload reserved", one(head + "message M {\n  bytes %s = 1 [%s]; // HERE\n}\n" %
                                 (rng.pick(words.KEYWORDS_20), MARK))),
        ("payload below", below),
        ("called as a class around", {
            "x/imported.proto": head + marked,
            "x/schema.proto": head + "import \"x/imported.proto\";\n" +
                              "message PlacedMarked {} // HERE\n",
        }),
    ]


def fbs_cases(rng):
    """As proto_cases()."""
    word = lambda place: rng.pick(exclusions.allowed(place))  # noqa: E731
    namespace = "namespace r.%s;\n" % word("fbs_namespace")
    call = "table Plain { a:int; }\nrpc_service S { %s(Plain):Plain; }\n" % word("fbs_method")
    keyword = rng.pick([each for each in words.KEYWORDS if each not in FLATC_GRAMMAR])
    unmangled = rng.pick(["NULL", "EOF", "errno", "char8_t", "consteval", "constinit", "unix"])
    member = rng.pick(["GetField", "fbb_", "GetPointer"])
    form = rng.pick(["f:%s; // HERE", "f:[%s]; // HERE"])

    def one(text, head=namespace):
        return {"x/schema.fbs": head + text + call}

    return [
        ("reserved namespace", one("", "namespace a.%s; // HERE\n" % keyword)),
        ("std below", one("", "namespace a.%s; // HERE\n" % rng.pick(["std", "flatbuffers"]))),
        ("reserved type", one("table %s { a:int; } // HERE\n" % unmangled)),
        ("reserved field", one("table T {\n  %s:int; // HERE\n}\n" % unmangled)),
        ("field of a keyword", one("table %s { a:int; }\ntable T {\n  %s\n}\n" % (
            keyword, form % keyword))),
        ("type std", one("table %s { a:int; } // HERE\n" % rng.pick(["std", "flatbuffers"]))),
        ("field of every table", one("table T {\n  %s:int; // HERE\n}\n" % member)),
        ("type of another one", one("table T { a:int; }\ntable TBuilder { a:int; } // HERE\n")),
        ("value MIN", one("enum E:int {\n  %s // HERE\n}\n" % rng.pick(["MIN", "MAX"]))),
        ("streaming", one("rpc_service Streams {\n" +
                          "  A(Plain):Plain (streaming: \"both\"); // HERE\n}\n")),
    ]


def command_of(name, folder, out, tools):
    if name.endswith(".fbs"):
        return [tools["verbena_flatc"], "--flatc=" + tools["flatc"], "-I", folder,
                "--verbena_out=" + out, os.path.join(folder, name)]
    return [tools["protoc"], "-I" + folder, "-I" + tools["options"],
            "--plugin=protoc-gen-verbena=" + tools["plugin"], "--verbena_out=" + out, name]


def run_case(what, files, rng, tools):
    """Returns what is wrong, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        line = 0
        for name, text in files.items():
            # Comments above move the line.
            comment = CommentWriter(rng, exclusions.FBS_TYPE_COMMENTS).leading("", 70)
            comment = comment.replace("///", "//-")  # flatc wants a declaration behind these.
            text = comment + text
            # As protoc counts: only '\n' ends a line.
            line = next((i + 1 for i, each in enumerate(text.split("\n")) if "// HERE" in each), 0)
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        out = os.path.join(folder, "out")
        os.mkdir(out)
        result = subprocess.run(command_of(name, folder, out, tools), stderr=subprocess.PIPE,
                                encoding="utf-8", errors="replace", check=False)
        expected = "%s:%d:" % (name, line)
        if result.returncode == 0:
            return "%s: is not refused:\n%s" % (what, text)
        if expected not in result.stderr:
            return "%s: no %s in: %s\n%s" % (what, expected, result.stderr, text)
        if os.listdir(out):
            return "%s: refused, and %s is written" % (what, os.listdir(out))
    return ""


def main():
    names = ["protoc", "plugin", "options", "flatc", "verbena_flatc"]
    tools = dict(zip(names, (os.path.abspath(path) for path in sys.argv[1:])))
    tools["options"] = tools["options"][:-len("/verbena/options.proto")]
    problems = []
    count = 0
    for seed in SEEDS:
        rng = Random(seed)
        for what, files in proto_cases(rng) + fbs_cases(rng):
            problem = run_case(what, files, rng, tools)
            count += 1
            if problem:
                problems.append("seed %d: %s" % (seed, problem))
    print("%d schemas, %d not refused as they should be" % (count, len(problems)))
    for problem in problems:
        print("FAILED: " + problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
