#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/codegen_bench runs: the time to generate and to compile one service.

usage: codegen_bench.py --sdk=FOLDER [--runs=N] [--methods=N] [--json]

Beside Verbena's generators stands gRPC's plugin, where it is installed. Each figure is the median of
N runs, in milliseconds: "generate" is one run of protoc (or verbena-flatc) that writes messages and
stubs, "messages" and "stubs" are g++ -O2 -c of what it wrote. FlatBuffers has no source for
messages: its code is in headers, and is compiled with the stubs.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

COMPILE = ["g++", "-std=c++20", "-O2", "-c"]


def proto_schema(methods):
    lines = ['syntax = "proto3";', "package bench;", "service Bench {"]
    lines += ["  rpc Method%d(Request%d) returns (Reply%d);" % (i, i, i) for i in range(methods)]
    lines.append("}")
    for i in range(methods):
        lines.append("message Request%d { string name = 1; int64 id = 2; repeated double x = 3; }" % i)
        lines.append("message Reply%d { string text = 1; bytes data = 2; }" % i)
    return "\n".join(lines) + "\n"


def fbs_schema(methods):
    lines = ["namespace bench;"]
    for i in range(methods):
        lines.append("table Request%d { name: string; id: long; x: [double]; }" % i)
        lines.append("table Reply%d { text: string; data: [ubyte]; }" % i)
    lines.append("rpc_service Bench {")
    lines += ["  Method%d(Request%d): Reply%d;" % (i, i, i) for i in range(methods)]
    lines.append("}")
    return "\n".join(lines) + "\n"


class Skipped(Exception):
    """A generator is not there; the text is the reason."""


def program(name):
    path = shutil.which(name)
    if path is None:
        raise Skipped("%s is not installed" % name)
    return path


class Verbena:
    schema = ("bench.proto", proto_schema)
    sources = {"messages": "bench.pb.cc", "stubs": "bench.verbena.cc"}

    def __init__(self, sdk):
        self.include = ["-I" + os.path.join(sdk, "include")]
        self.generate = [program("protoc"), "-I.", "--cpp_out=.", "--verbena_out=.",
                         "--plugin=protoc-gen-verbena=" + os.path.join(sdk, "bin/protoc-gen-verbena"),
                         "bench.proto"]


class VerbenaFlatc:
    schema = ("bench.fbs", fbs_schema)
    sources = {"stubs": "bench.verbena.cc"}

    def __init__(self, sdk):
        self.include = ["-I" + os.path.join(sdk, "include")]
        generator = os.path.join(sdk, "bin/verbena-flatc")
        if not os.path.exists(generator):
            raise Skipped("verbena-flatc is not in %s" % sdk)
        program("flatc")
        if not glob.glob("/usr/include/flatbuffers/flatbuffers.h"):
            raise Skipped("libflatbuffers-dev is not installed")
        self.generate = [generator, "-I", ".", "--cpp_out=.", "--verbena_out=.", "bench.fbs"]


class Grpc:
    schema = ("bench.proto", proto_schema)
    sources = {"messages": "bench.pb.cc", "stubs": "bench.grpc.pb.cc"}

    def __init__(self, _sdk):
        self.include = []
        try:
            plugin = program("grpc_cpp_plugin")
        except Skipped:
            raise Skipped("grpc_cpp_plugin is not installed: protobuf-compiler-grpc")
        if not os.path.exists("/usr/include/grpcpp/grpcpp.h"):
            raise Skipped("gRPC's headers are not installed: libgrpc++-dev")
        self.generate = [program("protoc"), "-I.", "--cpp_out=.", "--grpc_out=.",
                         "--plugin=protoc-gen-grpc=" + plugin, "bench.proto"]


GENERATORS = {"verbena": Verbena, "verbena-flatc": VerbenaFlatc, "grpc": Grpc}


def milliseconds(command, folder):
    start = time.monotonic()
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            encoding="utf-8", errors="replace", check=False)
    elapsed = time.monotonic() - start
    if result.returncode != 0:
        sys.exit("codegen_bench: %s\n%s" % (" ".join(command), result.stdout))
    return elapsed * 1000


def measure(generator, runs, methods):
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        name, schema = generator.schema
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(schema(methods))
        for _ in range(runs):
            times.setdefault("generate", []).append(milliseconds(generator.generate, folder))
            for part, source in generator.sources.items():
                command = COMPILE + ["-I."] + generator.include + [source, "-o", part + ".o"]
                times.setdefault(part, []).append(milliseconds(command, folder))
        lines = 0
        for part in generator.sources.values():
            for extension in [".h", ".cc"]:
                path = os.path.join(folder, part[:-len(".cc")] + extension)
                with open(path, encoding="utf-8") as file:
                    lines += sum(1 for _ in file)
    figures = {part + "_ms": round(statistics.median(values), 1) for part, values in times.items()}
    figures["total_ms"] = round(sum(figures.values()), 1)
    figures["generated_lines"] = lines
    return figures


def print_table(result):
    print("One service of %d methods, median of %d runs, ms (%s)\n" % (
        result["methods"], result["runs"], " ".join(COMPILE)))
    columns = ["generate_ms", "messages_ms", "stubs_ms", "total_ms", "generated_lines"]
    print("%-14s" % "" + "".join("%12s" % c.replace("_ms", "").replace("generated_", "")
                                 for c in columns))
    for name, figures in result["generators"].items():
        if "skipped" in figures:
            print("%-14s  left out: %s" % (name, figures["skipped"]))
        else:
            print("%-14s" % name + "".join("%12s" % figures.get(c, "-") for c in columns))


def main():
    parser = argparse.ArgumentParser(prog="tools/codegen_bench", description=__doc__.split("\n")[0])
    parser.add_argument("--sdk", required=True, help="what bazel build //sdk:verbena makes")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--methods", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    if arguments.runs < 1 or arguments.methods < 1:
        parser.error("--runs and --methods are at least 1")
    result = {"methods": arguments.methods, "runs": arguments.runs, "generators": {}}
    for name, generator in GENERATORS.items():
        try:
            result["generators"][name] = measure(generator(os.path.abspath(arguments.sdk)),
                                                 arguments.runs, arguments.methods)
        except Skipped as reason:
            result["generators"][name] = {"skipped": str(reason)}
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
