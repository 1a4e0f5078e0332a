#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of print_figures.py, on build events as Bazel 4.2.3 writes them."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import print_figures  # noqa: E402


class PrintFiguresTest(unittest.TestCase):

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name
        self.events = []

    def add_result(self, label, files):
        outputs = [{"name": "test.log", "uri": "file:///none/test.log"}]
        if files is not None:
            path = os.path.join(self.folder, "%d.zip" % len(self.events))
            with zipfile.ZipFile(path, "w") as archive:
                for name, text in files.items():
                    archive.writestr(name, text)
            outputs.append({"name": "test.outputs__outputs.zip", "uri": "file://" + path})
        self.events.append({"id": {"testResult": {"label": label}},
                            "testResult": {"status": "PASSED", "testActionOutput": outputs}})

    def print(self):
        with open(os.path.join(self.folder, "plain.json"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in self.events)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            print_figures.main(self.folder, ["plain"])
        return output.getvalue()

    def test_prints_figures_by_label(self):
        self.add_result("//x:b_test", {"figures.txt": "8 us\n", "other.txt": "no"})
        self.add_result("//x:a_test", {"figures.txt": "9 us\n10 us"})
        self.assertEqual(self.print(), "\n---- figures of //x:a_test [plain]\n9 us\n10 us\n"
                                       "\n---- figures of //x:b_test [plain]\n8 us\n")

    def test_tests_without_figures_are_left_out(self):
        self.add_result("//x:a_test", None)
        self.add_result("//x:b_test", {"other.txt": "no"})
        self.assertEqual(self.print(), "")

    def test_archive_that_is_gone_is_left_out(self):
        self.add_result("//x:a_test", {"figures.txt": "9 us"})
        os.remove(os.path.join(self.folder, "0.zip"))
        self.assertEqual(self.print(), "")


if __name__ == "__main__":
    unittest.main()
