#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the figures.txt that tests left behind, for tools/check.

usage: print_figures.py FOLDER RUN...

FOLDER holds RUN.json of each RUN, as for count_results.py. A test's figures are in the archive of
what it wrote to TEST_UNDECLARED_OUTPUTS_DIR.
"""

import os
import sys
import zipfile

import count_results


def read_figures(archive):
    """The text of figures.txt in the archive, or None."""
    try:
        with zipfile.ZipFile(archive) as outputs:
            return outputs.read("figures.txt").decode("utf-8", "replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def find_figures(events):
    """[(label, text)], by label."""
    figures = {}
    for event in events:
        label = event.get("id", {}).get("testResult", {}).get("label")
        for output in event.get("testResult", {}).get("testActionOutput", []):
            if label and output.get("name") == "test.outputs__outputs.zip":
                text = read_figures(count_results.local_path(output.get("uri")))
                if text is not None:
                    figures[label] = text
    return sorted(figures.items())


def main(folder, runs):
    for run in runs:
        events = count_results.read_events(os.path.join(folder, run + ".json"))
        for label, text in find_figures(events):
            print("\n---- figures of %s [%s]" % (label, run))
            print(text.rstrip("\n"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
