#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test results for tools/check.

usage: count_results.py FOLDER RUN...

For each RUN, FOLDER holds RUN.json, which `bazel test --build_event_json_file` wrote, and
RUN.status, Bazel's exit status. Only files that this record names are read, so that results of
earlier runs in bazel-testlogs never count. Prints failures and reasons for skipping; the last line
is "N passed, N failed, N skipped". Exits 1 when anything failed or when nothing ran.
"""

import collections
import json
import os
import re
import sys
import urllib.parse
import xml.etree.ElementTree

LOG_TAIL_LINES = 40

# Bazel's exit statuses after which the events tell everything: success, test failures, no tests.
BAZEL_STATUS_COMPLETE = ("0", "3", "4")


BAD_PACKAGE = re.compile(r"^ERROR: .*?package contains errors: ([^\s:]+)", re.MULTILINE)


class Counts:
    """What one run, or all of them, came to. failed and skipped hold printable lines."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return "%d passed, %d failed, %d skipped" % (
            self.passed, len(self.failed), len(self.skipped))


def read_events(path):
    """The build events; a last line that was cut off when Bazel died is left out."""
    events = []
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    events.append(json.loads(line))
                except ValueError:
                    pass
    except FileNotFoundError:
        pass
    return events


def local_path(uri):
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path) if uri else ""


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def log_tail(text):
    """The last lines of a test.log, without the three that Bazel puts on top."""
    lines = text.splitlines()
    if len(lines) >= 3 and lines[0].startswith("exec ${PAGER"):
        lines = lines[3:]
    return lines[-LOG_TAIL_LINES:]


def reason_of(element):
    """The text of a <failure> or <skipped>, on one line."""
    text = element.get("message") or element.text or "no reason given"
    return " ".join(text.split())


def count_cases(xml_path, log_path, label):
    """Counts the cases of one test.xml. Raises ParseError or OSError when there is none."""
    counts = Counts()
    for case in xml.etree.ElementTree.parse(xml_path).getroot().iter("testcase"):
        # GoogleTest names a class; the file that Bazel writes for any other test does not.
        is_gtest = case.get("classname") is not None
        name = "%s %s.%s" % (label, case.get("classname"), case.get("name")) if is_gtest else label
        failure = case.find("failure")
        failure = case.find("error") if failure is None else failure
        skip = case.find("skipped")
        if failure is not None:
            counts.failed.append("%s: %s" % (name, reason_of(failure)))
        elif skip is not None:
            counts.skipped.append("%s: %s" % (name, reason_of(skip)))
        elif case.get("status") == "notrun":
            counts.skipped.append("%s: disabled" % name)
        else:
            says_skipped = None
            if not is_gtest:
                says_skipped = re.search(r"^SKIPPED: *(.*)$", read_text(log_path), re.MULTILINE)
            if says_skipped:
                counts.skipped.append("%s: %s" % (name, says_skipped.group(1)))
            else:
                counts.passed += 1
    return counts


def count_result(label, result):
    """Counts one run of one test target (of one shard, if it has several)."""
    outputs = {o.get("name"): local_path(o.get("uri")) for o in result.get("testActionOutput", [])}
    log_path = outputs.get("test.log", "")
    status = result.get("status", "NO_STATUS")
    counts = Counts()
    try:
        counts = count_cases(outputs.get("test.xml", ""), log_path, label)
    except (OSError, xml.etree.ElementTree.ParseError):
        if status == "PASSED":
            counts.failed.append("%s: passed, but left no readable test.xml" % label)
    if status == "TIMEOUT":  # Bazel's own test.xml tells only of the signal.
        counts.failed = ["%s: timed out" % label]
    elif status != "PASSED" and not counts.failed:
        counts.failed.append("%s: %s outside of any test case" % (label, status))
    return counts, log_path


def count_run(events, bazel_status):
    """Returns the run's Counts and [(label, log path)] of what failed."""
    results = {}  # (label, run, shard) -> (attempt, result): of several attempts the last counts.
    broken = collections.OrderedDict()  # label -> why it was not built
    for event in events:
        event_id = event.get("id", {})
        if "testResult" in event_id and "testResult" in event:
            key = event_id["testResult"]
            attempt = key.get("attempt", 1)
            key = (key["label"], key.get("run", 1), key.get("shard", 1))
            if key not in results or results[key][0] <= attempt:
                results[key] = (attempt, event["testResult"])
        elif "targetCompleted" in event_id:
            label = event_id["targetCompleted"]["label"]
            completed = event.get("completed")
            if completed is None:
                aborted = event.get("aborted", {})
                if aborted.get("reason") != "SKIPPED":
                    broken[label] = aborted.get("description") or aborted.get("reason", "aborted")
            elif not completed.get("success", False):
                broken[label] = "failed to build"
        elif "aborted" in event:
            for kind in ("unconfiguredLabel", "configuredLabel", "targetConfigured"):
                if kind in event_id:
                    broken.setdefault(event_id[kind].get("label", kind),
                                      event["aborted"].get("description", "aborted").strip())
            if "pattern" in event_id:
                broken.setdefault(" ".join(event_id["pattern"].get("pattern", [])),
                                  event["aborted"].get("description", "aborted").strip())
        # A BUILD file with errors has no event of its own; its targets are just not there.
        for package in BAD_PACKAGE.findall(event.get("progress", {}).get("stderr", "")):
            broken.setdefault("//" + package, "the BUILD file has errors")

    counts = Counts()
    logs = []
    for (label, _, _), (_, result) in sorted(results.items()):
        one, log_path = count_result(label, result)
        counts.add(one)
        if one.failed:
            logs.append((label, log_path))
    tested = {label for label, _, _ in results}
    # A test that failed also has an unsuccessful targetCompleted in some versions of Bazel.
    counts.failed += ["%s: %s" % (label, " ".join(why.split()))
                      for label, why in broken.items() if label not in tested]
    if bazel_status not in BAZEL_STATUS_COMPLETE and not broken:
        counts.failed.append("bazel: ended with status %s; its output is above" % bazel_status)
    return counts, logs


def print_failures(counts, logs):
    for label, path in logs:
        print("\n---- log of %s: %s" % (label, path or "none"))
        for line in log_tail(read_text(path)):
            print("    " + line)
    if counts.failed:
        print()
    paths = dict(logs)
    for line in counts.failed:
        label = re.split(r"[ ]|: ", line, maxsplit=1)[0]
        path = paths.get(label)
        print("FAILED %s%s" % (line[:300], " (log: %s)" % path if path else ""))


def main(folder, runs):
    total = Counts()
    summaries = []
    for run in runs:
        events = read_events(os.path.join(folder, run + ".json"))
        status = read_text(os.path.join(folder, run + ".status")).strip() or "unknown"
        counts, logs = count_run(events, status)
        for lines in (counts.failed, counts.skipped):
            lines[:] = ["%s [%s]" % (line, run) for line in lines]
        print_failures(counts, logs)
        for line in counts.skipped:
            print("SKIPPED %s" % line)
        summaries.append("%s: %s" % (run, counts))
        total.add(counts)
    if not (total.passed or total.failed or total.skipped):
        total.failed.append("nothing ran")
        print("FAILED nothing ran: no test was found")
    print()
    if len(summaries) > 1:
        print("\n".join(summaries))
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
