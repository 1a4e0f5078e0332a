#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of merge_vm_results.py, on files as GoogleTest and tests/vm/run_binaries.sh write them."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import merge_vm_results  # noqa: E402

PASS_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="0" disabled="0" errors="0" time="0.001" name="AllTests">
  <testsuite name="Small" tests="1" failures="0" time="0">
    <testcase name="Passes" status="run" result="completed" time="0" classname="Small" />
  </testsuite>
  <testsuite name="Rxe/Big" tests="1" failures="0" time="0">
    <testcase name="Skips/0" status="run" result="skipped" time="0" classname="Rxe/Big">
      <skipped message="no atomics" />
    </testcase>
  </testsuite>
</testsuites>
"""

FAIL_XML = """<testsuites><testsuite name="Small" tests="1" failures="1">
  <testcase name="Fails" status="run" result="completed" classname="Small">
    <failure message="one is not two" type=""></failure>
  </testcase></testsuite></testsuites>
"""


class MergeVmResultsTest(unittest.TestCase):

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name

    def add(self, binary, status=None, xml=None, log=None):
        for suffix, text in ((".status", status), (".xml", xml), (".log", log)):
            if text is not None:
                with open(os.path.join(self.folder, binary + suffix), "w",
                          encoding="utf-8") as file:
                    file.write(text)

    def merge(self, *binaries, vm_status=0):
        """Returns the exit status and {"class.case": failure's message, "skipped" or None}."""
        output = os.path.join(self.folder, "test.xml")
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            status = merge_vm_results.main(
                ["--device=rxe", "--vm-status=%d" % vm_status, "--results=" + self.folder,
                 "--output=" + output] + list(binaries))
        cases = {}
        self.root = ElementTree.parse(output).getroot()
        for case in self.root.iter("testcase"):
            failure = case.find("failure")
            outcome = "skipped" if case.find("skipped") is not None else None
            cases["%s.%s" % (case.get("classname"), case.get("name"))] = (
                outcome if failure is None else failure.get("message"))
        return status, cases

    def test_cases_get_the_device_as_a_prefix(self):
        self.add("a_test", "0\n", PASS_XML, "log")
        self.assertEqual(self.merge("a_test"), (0, {
            "rxe.Small.Passes": None,
            "rxe.Rxe/Big.Skips/0": "skipped",
        }))
        self.assertEqual([suite.get("name") for suite in self.root], ["rxe.Small", "rxe.Rxe/Big"])

    def test_cases_of_several_binaries_are_in_one_file(self):
        self.add("a_test", "0\n", PASS_XML, "log")
        self.add("b_test", "1\n", FAIL_XML, "log")
        status, cases = self.merge("a_test", "b_test")
        self.assertEqual(status, 1)
        self.assertEqual(cases["rxe.Small.Fails"], "one is not two")
        self.assertEqual(len(cases), 3)
        self.assertEqual((self.root.get("tests"), self.root.get("failures")), ("3", "1"))

    def test_crash_is_one_failure_that_names_the_case(self):
        self.add("a_test", "139\n", None, "[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n"
                                          "[ RUN      ] A.Two\nSegmentation")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.a_test": "killed by SIGSEGV in A.Two"}))

    def test_exit_before_any_case_is_a_failure(self):
        self.add("a_test", "127\n", None, "error while loading shared libraries\n")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.a_test": "exit status 127"}))

    def test_half_a_result_file_is_as_good_as_none(self):
        self.add("a_test", "134\n", PASS_XML[:200], "")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.a_test": "killed by SIGABRT"}))

    def test_success_without_results_is_a_failure(self):
        self.add("a_test", "0\n", None, "not GoogleTest")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.a_test": "left no results"}))

    def test_too_long_is_a_failure_that_names_the_case(self):
        self.add("a_test", "timeout\n", None, "[ RUN      ] A.One\n")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.a_test": "took too long in A.One"}))

    def test_failure_after_the_cases_counts(self):
        # LeakSanitizer fails a program after GoogleTest has written that all is well.
        self.add("a_test", "23\n", PASS_XML, "log")
        status, cases = self.merge("a_test")
        self.assertEqual(status, 1)
        self.assertEqual(cases["rxe.a_test"], "exit status 23, although no case failed")
        self.assertEqual(len(cases), 3)

    def test_status_that_a_failed_case_explains_is_not_counted_again(self):
        self.add("a_test", "1\n", FAIL_XML, "log")
        self.assertEqual(self.merge("a_test"), (1, {"rxe.Small.Fails": "one is not two"}))

    def test_vm_that_dies_tells_where_it_was(self):
        self.add("a_test", "0\n", PASS_XML, "log")
        self.add("b_test", None, None, "[ RUN      ] B.One\n")
        status, cases = self.merge("a_test", "b_test", "c_test", vm_status=125)
        self.assertEqual(status, 1)
        self.assertEqual(cases["rxe.b_test"], "the VM ended in B.One")
        self.assertEqual(cases["rxe.c_test"], "did not run")
        self.assertIn("rxe.vm", cases)
        self.assertEqual(len(cases), 5)
        self.assertIn("[ RUN      ] B.One", self.printed.getvalue())

    def test_kernel_that_complains_is_a_failure(self):
        self.add("a_test", "0\n", PASS_XML, "log")
        status, cases = self.merge("a_test", vm_status=125)
        self.assertEqual(status, 1)
        self.assertIn("rxe.vm", cases)

    def test_vm_that_cannot_start_is_a_failure(self):
        self.assertEqual(self.merge("a_test", vm_status=126),
                         (1, {"rxe.a_test": "did not run"}))

    def test_vm_that_fails_in_another_way_is_a_failure(self):
        self.add("a_test", "0\n", PASS_XML, "log")
        status, cases = self.merge("a_test", vm_status=124)
        self.assertEqual(status, 1)
        self.assertEqual(cases["rxe.vm"], "tools/vm/run: exit status 124")


if __name__ == "__main__":
    unittest.main()
