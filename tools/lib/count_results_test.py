#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of count_results.py, on build events and result files as Bazel 4.2.3 writes them."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import count_results  # noqa: E402

GTEST_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" time="0" name="AllTests">
  <testsuite name="Mixed" tests="4" failures="1" disabled="1" skipped="1" errors="0" time="0">
    <testcase name="Passes" status="run" result="completed" time="0" classname="Mixed" />
    <testcase name="Fails" status="run" result="completed" time="0" classname="Mixed">
      <failure message="x.cc:3&#x0A;one is not two" type=""><![CDATA[x.cc:3]]></failure>
    </testcase>
    <testcase name="Skips" status="run" result="skipped" time="0" classname="Mixed">
      <skipped message="x.cc:4&#x0A;no NIC"><![CDATA[x.cc:4 no NIC]]></skipped>
    </testcase>
    <testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="Mixed" />
  </testsuite>
</testsuites>
"""

GTEST_PASS_XML = """<testsuites><testsuite name="A">
  <testcase name="One" status="run" result="completed" classname="A" />
  <testcase name="Two" status="run" result="completed" classname="A" />
</testsuite></testsuites>
"""

BAZEL_XML = """<testsuites><testsuite name="x/sh_test" tests="1" failures="0" errors="%d">
  <testcase name="x/sh_test" status="run" duration="0" time="0">%s</testcase>
  <system-out><![CDATA[output]]></system-out>
</testsuite></testsuites>
"""
BAZEL_PASS_XML = BAZEL_XML % (0, "")
BAZEL_FAIL_XML = BAZEL_XML % (1, '<error message="exited with error code 134"></error>')


class CountResultsTest(unittest.TestCase):

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name
        self.events = []

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def add_result(self, label, status, xml, log="", shard=1, attempt=1):
        number = len(self.events)
        outputs = [{"name": "test.log", "uri": "file://" + self.write("%d.log" % number, log)}]
        if xml is not None:
            uri = "file://" + self.write("%d.xml" % number, xml)
            outputs.append({"name": "test.xml", "uri": uri})
        self.events.append({
            "id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
            "testResult": {"status": status, "testActionOutput": outputs},
        })

    def add_completed(self, label, success):
        completed = {"success": True} if success else {}
        self.events.append({"id": {"targetCompleted": {"label": label}}, "completed": completed})

    def count(self, bazel_status="0"):
        """Returns the exit status and the lines that were printed."""
        self.write("plain.json", "".join(json.dumps(event) + "\n" for event in self.events))
        self.write("plain.status", bazel_status + "\n")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = count_results.main(self.folder, ["plain"])
        return status, output.getvalue().splitlines()

    def test_counts_each_case_of_a_gtest_binary(self):
        self.add_result("//x:mixed_test", "FAILED", GTEST_XML)
        status, lines = self.count("3")
        self.assertEqual(lines[-1], "1 passed, 1 failed, 2 skipped")
        self.assertEqual(status, 1)
        self.assertIn("SKIPPED //x:mixed_test Mixed.Skips: x.cc:4 no NIC [plain]", lines)
        self.assertTrue(any(line.startswith(
            "FAILED //x:mixed_test Mixed.Fails: x.cc:3 one is not two [plain] (log: ")
                            for line in lines), lines)

    def test_success_exits_zero(self):
        self.add_result("//x:a_test", "PASSED", GTEST_PASS_XML)
        self.add_completed("//x:a_test", True)
        self.assertEqual(self.count(), (0, ["", "2 passed, 0 failed, 0 skipped"]))

    def test_other_tests_count_one_each(self):
        self.add_result("//x:sh_test", "PASSED", BAZEL_PASS_XML)
        self.add_result("//x:sh_skip_test", "PASSED", BAZEL_PASS_XML, log="SKIPPED: no /dev/kvm\n")
        self.add_result("//x:sh_fail_test", "FAILED", BAZEL_FAIL_XML, log="SKIPPED: not quite\n")
        status, lines = self.count("3")
        self.assertEqual(lines[-1], "1 passed, 1 failed, 1 skipped")
        self.assertIn("SKIPPED //x:sh_skip_test: no /dev/kvm [plain]", lines)
        self.assertEqual(status, 1)

    def test_failure_outside_of_the_cases_counts(self):
        # LeakSanitizer fails a program after GoogleTest has written that all is well.
        self.add_result("//x:leak_test", "FAILED", GTEST_PASS_XML)
        self.assertEqual(self.count("3")[1][-1], "2 passed, 1 failed, 0 skipped")

    def test_crash_without_a_result_file_counts(self):
        self.add_result("//x:crash_test", "FAILED", None)
        self.assertEqual(self.count("3")[1][-1], "0 passed, 1 failed, 0 skipped")

    def test_half_a_result_file_counts_as_a_failure(self):
        self.add_result("//x:crash_test", "PASSED", GTEST_PASS_XML[:60])
        self.assertEqual(self.count()[1][-1], "0 passed, 1 failed, 0 skipped")

    def test_timeout_is_one_failure(self):
        self.add_result("//x:slow_test", "TIMEOUT", BAZEL_FAIL_XML)
        lines = self.count("3")[1]
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")
        self.assertTrue(any("//x:slow_test: timed out" in line for line in lines), lines)

    def test_every_shard_counts(self):
        self.add_result("//x:shard_test", "PASSED", GTEST_PASS_XML, shard=1)
        self.add_result("//x:shard_test", "PASSED", GTEST_PASS_XML, shard=2)
        self.assertEqual(self.count()[1][-1], "4 passed, 0 failed, 0 skipped")

    def test_last_attempt_of_a_flaky_test_counts(self):
        self.add_result("//x:flaky_test", "FAILED", BAZEL_FAIL_XML, attempt=1)
        self.add_result("//x:flaky_test", "PASSED", GTEST_PASS_XML, attempt=2)
        self.assertEqual(self.count()[1][-1], "2 passed, 0 failed, 0 skipped")

    def test_target_that_does_not_build_counts(self):
        self.add_result("//x:a_test", "PASSED", GTEST_PASS_XML)
        self.add_completed("//x:broken", False)
        status, lines = self.count("1")
        self.assertEqual(lines[-1], "2 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED //x:broken: failed to build [plain]", lines)
        self.assertEqual(status, 1)

    def test_build_file_with_errors_counts(self):
        self.add_result("//x:a_test", "PASSED", GTEST_PASS_XML)
        self.events.append({"id": {"progress": {}}, "progress": {
            "stderr": "ERROR: /x/y/bad/BUILD:1:1: no\nERROR: package contains errors: y/bad\n"}})
        lines = self.count("1")[1]
        self.assertEqual(lines[-1], "2 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED //y/bad: the BUILD file has errors [plain]", lines)

    def test_bazel_that_fails_for_another_reason_counts(self):
        self.add_result("//x:a_test", "PASSED", GTEST_PASS_XML)
        self.assertEqual(self.count("37")[1][-1], "2 passed, 1 failed, 0 skipped")

    def test_nothing_that_ran_is_a_failure(self):
        status, lines = self.count("4")
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")
        self.assertEqual(status, 1)

    def test_record_of_events_that_is_missing_is_a_failure(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(count_results.main(self.folder, ["none"]), 1)
        self.assertEqual(output.getvalue().splitlines()[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
