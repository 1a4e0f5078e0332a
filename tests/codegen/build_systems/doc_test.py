#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/code_generation.md shows is what the tests here build.

usage: doc_test.py PAGE FILE...      from the repository's root; with --update it writes PAGE

Behind each line "<!-- file: PATH -->" of PAGE stands a block with the text of that file, without the
licence line. Each FILE must be shown.
"""

import re
import sys

BLOCK = re.compile(r"^<!-- file: (\S+) -->\n(```\w*\n)(.*?)^```$", re.MULTILINE | re.DOTALL)
LICENCE = re.compile(r"\A(?:#|//) SPDX-License-Identifier: [^\n]*\n(?:(?:#|//)?\n)*")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    arguments = [each for each in sys.argv[1:] if each != "--update"]
    page, files = arguments[0], arguments[1:]
    shown = []

    def current(match):
        shown.append(match.group(1))
        return "<!-- file: %s -->\n%s%s```" % (
            match.group(1), match.group(2), LICENCE.sub("", read(match.group(1))))

    text = read(page)
    expected = BLOCK.sub(current, text)
    missing = sorted(set(files) - set(shown))
    if missing:
        sys.exit("FAILED: %s does not show %s" % (page, ", ".join(missing)))
    if "--update" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(expected)
    elif text != expected:
        sys.exit("FAILED: a block of %s is not what its file is. After a change that is meant:\n"
                 "  %s --update %s" % (page, sys.argv[0], " ".join(sys.argv[1:])))


if __name__ == "__main__":
    main()
