#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one test.xml of what the GoogleTest binaries of a vm_test left behind.

usage: merge_vm_results.py --device=NAME --vm-status=N --results=FOLDER --output=XML BINARY...

FOLDER holds, of each BINARY that ran, BINARY.xml (GoogleTest's), BINARY.log and BINARY.status (see
tests/vm/run_binaries.sh); N is the exit status of tools/vm/run. Suites get the device as a prefix:
the same binaries run on several. What no case tells is a failed case of its own, in the suite named
like the device: a binary that crashed, took too long, failed after its cases or did not run, and a
VM that failed. Exits 1 when anything failed.
"""

import argparse
import os
import re
import signal
import sys
import xml.etree.ElementTree as ElementTree

VM_FAILED = 125  # tools/vm/run's status for a guest kernel that crashed, hung or complained.

LOG_TAIL_LINES = 40

# GoogleTest's line about a case that begins.
RUNNING = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def read_suites(path):
    """The <testsuite> elements of a GoogleTest result file; none when it is missing or cut off."""
    try:
        return ElementTree.parse(path).getroot().findall("testsuite")
    except (OSError, ElementTree.ParseError):
        return []


def has_failure(suites):
    return any(case.find(kind) is not None
               for suite in suites for case in suite.iter("testcase")
               for kind in ("failure", "error"))


def last_case(log):
    """Words about the case that was running when the log ends, or nothing."""
    cases = RUNNING.findall(log)
    return " in %s" % cases[-1] if cases else ""


def describe_status(status):
    """An exit status as a shell has it, in words."""
    number = int(status)
    if number > 128:
        try:
            return "killed by %s" % signal.Signals(number - 128).name
        except ValueError:
            pass
    return "exit status %d" % number


def explain(status, suites, log):
    """What a binary's cases do not tell of its end; None when there is nothing."""
    if status == "":
        return "the VM ended%s" % last_case(log) if log else "did not run"
    if status == "timeout":
        return "took too long%s" % last_case(log)
    if status == "0":
        return None if suites else "left no results"
    if not suites:
        return "%s%s" % (describe_status(status), last_case(log))
    if has_failure(suites):
        return None
    # Such as LeakSanitizer, which speaks up when all is done.
    return "%s, although no case failed" % describe_status(status)


def prefix(device, suites):
    for suite in suites:
        suite.set("name", "%s.%s" % (device, suite.get("name")))
        for case in suite.iter("testcase"):
            case.set("classname", "%s.%s" % (device, case.get("classname")))


def failed_case(device, name, message):
    case = ElementTree.Element("testcase", name=name, classname=device, status="run",
                               result="completed", time="0")
    ElementTree.SubElement(case, "failure", message=message)
    return case


def count(suite, kind):
    return sum(case.find(kind) is not None for case in suite.iter("testcase"))


def merge(device, vm_status, folder, binaries):
    """The root element of the merged results."""
    root = ElementTree.Element("testsuites", name="AllTests")
    own = ElementTree.Element("testsuite", name=device)
    for binary in binaries:
        path = os.path.join(folder, binary)
        log = read_text(path + ".log")
        status = read_text(path + ".status").strip()
        suites = read_suites(path + ".xml")
        problem = explain(status, suites, log)
        if problem:
            own.append(failed_case(device, binary, problem))
        if log and not status:  # The guest prints a log when its binary has ended.
            print("==== %s (end of its log)" % binary)
            print("\n".join(log.splitlines()[-LOG_TAIL_LINES:]))
        prefix(device, suites)
        root.extend(suites)
    if vm_status == VM_FAILED:
        own.append(failed_case(device, "vm", "the VM failed or its kernel complains: see the log"))
    elif vm_status != 0 and len(own) == 0:
        own.append(failed_case(device, "vm", "tools/vm/run: exit status %d" % vm_status))
    if len(own) > 0:
        own.set("tests", str(len(own)))
        own.set("failures", str(len(own)))
        root.append(own)

    suites = root.findall("testsuite")
    root.set("tests", str(sum(len(suite.findall("testcase")) for suite in suites)))
    root.set("failures", str(sum(count(suite, "failure") for suite in suites)))
    root.set("errors", str(sum(count(suite, "error") for suite in suites)))
    return root


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True)
    parser.add_argument("--vm-status", type=int, required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("binaries", nargs="+")
    options = parser.parse_args(arguments)
    root = merge(options.device, options.vm_status, options.results, options.binaries)
    ElementTree.ElementTree(root).write(options.output, encoding="utf-8", xml_declaration=True)
    for case in root.iter("testcase"):
        if case.get("classname") == options.device:
            print("FAILED %s: %s" % (case.get("name"), case.find("failure").get("message")))
    return 1 if has_failure(root.findall("testsuite")) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
