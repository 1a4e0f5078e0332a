#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""codegen_bench_test.py SDK: codegen_bench.py measures what is there, and says what is not."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SDK = os.path.abspath(sys.argv.pop(1))


def bench(*arguments, path=None):
    environment = dict(os.environ, PATH=path or os.environ["PATH"])
    return subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, "codegen_bench.py"), "--sdk=" + SDK] +
        list(arguments), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", check=False)


class CodegenBenchTest(unittest.TestCase):

    def test_json_has_a_figure_or_a_reason_for_every_generator(self):
        result = bench("--runs=1", "--methods=2", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        figures = json.loads(result.stdout)
        self.assertEqual((figures["methods"], figures["runs"]), (2, 1))
        self.assertEqual(list(figures["generators"]), ["verbena", "verbena-flatc", "grpc"])
        for name, row in figures["generators"].items():
            if name == "grpc" and "skipped" in row:
                self.assertIn("installed", row["skipped"])
                continue
            parts = ["generate_ms", "messages_ms", "stubs_ms"]
            if name == "verbena-flatc":
                parts.remove("messages_ms")
            self.assertEqual(sorted(row), sorted(parts + ["total_ms", "generated_lines"]), name)
            for part in parts:
                self.assertGreater(row[part], 0, name)
            self.assertAlmostEqual(row["total_ms"], sum(row[part] for part in parts), delta=0.2)
            self.assertGreater(row["generated_lines"], 50)

    def test_what_is_not_installed_is_left_out_with_the_reason(self):
        result = bench("--runs=1", path="/nowhere")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("left out: protoc is not installed", result.stdout)
        self.assertIn("left out: flatc is not installed", result.stdout)
        self.assertIn("left out: grpc_cpp_plugin is not installed", result.stdout)

    def test_no_runs_are_an_error(self):
        self.assertEqual(bench("--runs=0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
