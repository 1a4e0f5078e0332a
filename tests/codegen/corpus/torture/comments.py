# SPDX-License-Identifier: Apache-2.0
"""Comments of every style, for schemas in which "//" and "/* */" are comments."""

# Each is one line of text. What it is to break is a generator that copies it behind "//" or into
# "/* */" as it is.
LINES = [
    "Plain text.",
    "*/ ends a block comment",
    "/* begins one",
    "// two slashes",
    "/ one slash",
    "ends in a backslash \\",
    "ends in two \\\\",
    "ends in a backslash and spaces \\  ",
    "$dollars$ and $$ and $1 and ${x}",
    "%s %d %% {0} {}",
    "\"quotes\" 'single' `back` R\"(raw)\"",
    "#include <nothing> #define rpc",
    "\u00fcn\u00efc\u00f6d\u00e9 \u6f22\u5b57 \U0001f680 \u200b\u2028\ufeff",
    "@param x \\brief \\return <b>bold</b> &amp;",
    "}; } ) >> ::",
    "\ttabs\tinside\t",
    "form \x0c feed, vertical \x0b tab",
    "",
    "   three spaces first",
    "* a star first",
    "clang-format off",
    "NOLINTNEXTLINE(*)",
    "-*- mode: c++ -*-",
    "longer than a line: " + "and on " * 40 + "it goes.",
]

# Not for every place; see exclusions.py.
CARRIAGE_RETURN = "a lone \r carriage return"
TRIGRAPH = "a trigraph, really??/"
BIDIRECTIONAL = "left \u202e to right"

# flatc 2.0 takes {{}} in a comment for a variable of its own, and aborts.
DOUBLE_BRACES = "{{}} {0}"


class CommentWriter:

    def __init__(self, rng, excluded):
        self.rng = rng
        self.lines = [line for line in LINES
                      if "splice" not in excluded or not line.rstrip().endswith("\\")]
        for name, line in [("carriage_return", CARRIAGE_RETURN), ("trigraph", TRIGRAPH),
                           ("bidirectional", BIDIRECTIONAL), ("double_braces", DOUBLE_BRACES)]:
            if name not in excluded:
                self.lines.append(line)

    def _text(self):
        return [self.rng.pick(self.lines) for _ in range(self.rng.between(1, 4))]

    @staticmethod
    def _inside(line):
        """As it may stand in a block comment, which neither nests nor ends early."""
        return line.replace("*/", "* /").replace("/*", "/ *")

    def _block(self, indent):
        text = [self._inside(line) for line in self._text()]
        style = self.rng.below(3)
        if style == 0:
            return "%s/* %s */\n" % (indent, " ".join(text))
        middle = " * " if style == 1 else ""
        return "%s/**\n%s%s */\n" % (
            indent, "".join("%s%s%s\n" % (indent, middle, line) for line in text), indent)

    def leading(self, indent, percent=50):
        """Lines before a declaration, or none."""
        if not self.rng.chance(percent):
            return ""
        detached = "%s// %s\n\n" % (indent, self.rng.pick(self.lines))
        result = detached if self.rng.chance(15) else ""
        if self.rng.chance(35):
            return result + self._block(indent)
        slashes = self.rng.pick(["// ", "//", "/// ", "//\t", "//////"])
        return result + "".join("%s%s%s\n" % (indent, slashes, line) for line in self._text())

    def trailing(self):
        """What follows a declaration on its line."""
        if not self.rng.chance(15):
            return "\n"
        if self.rng.chance(30):
            return "  /* %s */\n" % self._inside(self.rng.pick(self.lines))
        return "  // %s\n" % self.rng.pick(self.lines)

    def inline(self):
        """Between two tokens."""
        if not self.rng.chance(8):
            return " "
        return " /* %s */ " % self._inside(self.rng.pick(self.lines))
