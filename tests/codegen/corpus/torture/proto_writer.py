# SPDX-License-Identifier: Apache-2.0
"""Writes one .proto file of write_protos.py: messages, enums, services and their comments."""

import exclusions
import words
from comments import CommentWriter

PAYLOAD_IMPORT = "<import of verbena/options.proto>\n"  # Stands for it while a file is written.

SCALARS = """double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64
bool string bytes""".split()
MAP_KEYS = "int32 int64 uint32 uint64 sint32 fixed64 bool string".split()


class Message:
    """A message type that others may name."""

    def __init__(self, full_name, cpp_name, payload):
        self.full_name = full_name
        self.cpp_name = cpp_name  # In its package.
        self.payload = payload  # Has fields marked PAYLOAD.
        self.extensible = False


class Package:
    """What is declared in one package; files may share it."""

    def __init__(self, name, prefix):
        self.name = name
        self.prefix = prefix  # Of every name in it: where names of a library would be in the way.
        self.schema = set()  # Names in the schema's scope.
        self.cpp = set()  # Names that protoc gives to types and values in the namespace.
        self.curious = []  # Of those the ones that only exist in C++, for services to be called so.

    def qualified(self, name):
        return ".".join(part for part in [self.name, name] if part)

    def claim_type(self, name, cpp_name, scope):
        """If `name` is free in `scope`, and `cpp_name` in the namespace, takes both."""
        cpp = {cpp_name, cpp_name + "_", cpp_name + "DefaultTypeInternal", "Placed" + cpp_name}
        if name in scope or cpp & self.cpp or self.cpp_values_clash(cpp):
            return False
        if scope is not self.schema and cpp_name in self.schema:
            return False
        scope.add(name)
        self.cpp |= cpp
        return True

    def cpp_values_clash(self, cpp):
        return any(name in self.schema for name in cpp if name.endswith("_"))


class SchemaWriter:
    """Writes one file."""

    def __init__(self, rng, path, package, syntax, visible):
        self.rng = rng
        self.path = path
        self.package = package
        self.syntax = syntax
        self.visible = list(visible)  # Messages of imported files.
        self.own = []  # Messages of this file.
        self.enums = []  # (full name, a value) of this file.
        self.services = []  # For the manifest.
        self.comments = CommentWriter(rng, set())
        self.out = []
        self.may_have_payload = True  # Its file imports verbena/options.proto.
        self.options = []  # Of the schema's own, by what they extend: set by whoever imports them.

    # ---- Names ------------------------------------------------------------------------------

    def word(self, place):
        """A word that may stand in `place`; the package's prefix makes any other one a name."""
        allowed = exclusions.allowed(place)
        word = self.rng.pick(allowed)
        if self.rng.chance(10):
            word += self.rng.pick(["_", "_1", "Request", "s"])
            if word not in words.ALL:
                return word
            word = self.rng.pick(allowed)
        return word

    def type_name(self, place, scope, outer=""):
        for _ in range(200):
            name = self.word(place)
            if not outer:
                name = self.package.prefix + name
            cpp_name = outer + "_" + name if outer else name
            if self.package.claim_type(name, cpp_name, scope):
                return name, cpp_name
        raise AssertionError("no name is free for a " + place)

    def field_name(self, used, place="field"):
        for _ in range(200):
            name = self.word(place)
            key = name.lower().replace("_", "")  # What it is in JSON, and more.
            if key and key not in used:
                used.add(key)
                return name
        raise AssertionError("no name is free for a field")

    # ---- Text -------------------------------------------------------------------------------

    def line(self, indent, text):
        self.out.append("%s%s%s" % (indent, text, self.comments.trailing()))

    def block(self, text):
        self.out.append(text)

    def stray(self, indent):
        if self.rng.chance(5):
            self.out.append(indent + ";\n")

    def string(self, text):
        quote = self.rng.pick("'\"")
        half = len(text) // 2
        if self.rng.chance(20) and "\\" not in text:
            return "%s%s%s %s%s%s" % (quote, text[:half], quote, quote, text[half:], quote)
        return quote + text + quote

    # ---- Enums ------------------------------------------------------------------------------

    def enum(self, indent, scope, outer, outer_full):
        name, cpp_name = self.type_name("enum", scope, outer)
        self.package.cpp |= {cpp_name + suffix for suffix in exclusions.ENUM_SUFFIXES}
        if not outer:
            self.package.curious += [cpp_name + suffix for suffix in exclusions.ENUM_SUFFIXES]
        self.block(self.comments.leading(indent))
        self.line(indent, "enum %s {" % name)
        values = []
        if self.rng.chance(20):
            self.line(indent + "  ", "option allow_alias = true;")
            self.line(indent + "  ", "%s = 0;" % self.value_name(name, scope, outer, values))
        self.line(indent + "  ", "%s = %s;" % (self.value_name(name, scope, outer, values),
                                               self.rng.pick(["0", "0x0", "00"])))
        for number in self.rng.sample([1, 2, -1, 7, 0x7FFFFFFF, -0x80000000, 1000], 3):
            self.block(self.comments.leading(indent + "  ", 20))
            self.line(indent + "  ", "%s = %d;" % (self.value_name(name, scope, outer, values),
                                                   number))
        if self.rng.chance(20):
            self.line(indent + "  ", "reserved 500 to 600, 800 to 900;")
        self.block(indent + "}\n")
        self.enums.append((self.package.qualified(outer_full + name), values[0]))

    def value_name(self, enum_name, scope, outer, values):
        """Values are in the scope around their enum, also in C++. protoc wants them different also
        without the enum's name in front."""
        def key(name):
            key = name.lower().replace("_", "")
            prefix = enum_name.lower().replace("_", "")
            return key[len(prefix):] if key.startswith(prefix) else key

        for _ in range(200):
            name = (self.package.prefix if not outer else "") + self.word("value")
            cpp_name = outer + "_" + name if outer else name
            names = {cpp_name, cpp_name + "_"}
            if name in scope or names & self.package.cpp or not key(name):
                continue
            if outer and cpp_name in self.package.schema:
                continue
            if key(name) in [key(other) for other in values]:
                continue
            scope.add(name)
            self.package.cpp |= names
            if outer:
                self.package.curious.append(cpp_name)
            values.append(name)
            return name
        raise AssertionError("no name is free for a value")

    # ---- Messages ---------------------------------------------------------------------------

    def message(self, indent="", scope=None, outer="", outer_full="", depth=0):
        scope = self.package.schema if scope is None else scope
        name, cpp_name = self.type_name("message" if not outer else "nested", scope, outer)
        payload = self.rng.chance(25) and self.may_have_payload
        full_name = self.package.qualified(outer_full + name)
        self.block(self.comments.leading(indent))
        self.line(indent, "message %s%s{" % (name, self.comments.inline()))
        if outer:
            self.package.curious.append(cpp_name)
        if payload:
            self.package.curious.append("Placed" + cpp_name)
        inner = indent + "  "
        own = Message(full_name, cpp_name, payload)
        if self.rng.chance(10):
            self.line(inner, "option deprecated = true;")
        inside = {name}  # protoc's class has a constructor.
        if self.rng.chance(30):
            self.enum(inner, inside, cpp_name, outer_full + name + ".")
        if depth < 3 and self.rng.chance(45 - 10 * depth):
            self.message(inner, inside, cpp_name, outer_full + name + ".", depth + 1)
        # Fields and types of a message are in one scope.
        used = {each.lower().replace("_", "") for each in inside}
        self.fields(inner, used, own)
        self.stray(inner)
        self.block(indent + "}\n")
        self.own.append(own)

    def fields(self, indent, used, message):
        all_numbers = list(range(1, 16)) + [16, 2047, 18999, 20000, 536870911]
        numbers = iter(self.rng.sample(all_numbers, 16))
        for _ in range(self.rng.between(0, 4)):
            self.field(indent, used, next(numbers), message)
        if message.payload:
            self.payload_fields(indent, used, numbers)
        if self.rng.chance(25):
            self.block(self.comments.leading(indent))
            self.line(indent, "oneof %s {" % self.field_name(used, "oneof"))
            for _ in range(self.rng.between(1, 3)):
                self.line(indent + "  ", "%s %s = %d;" % (
                    self.field_type(message), self.field_name(used), next(numbers)))
            self.block(indent + "}\n")
        if self.rng.chance(25):
            self.line(indent, "map<%s, %s> %s = %d;" % (
                self.rng.pick(MAP_KEYS), self.field_type(message), self.field_name(used),
                next(numbers)))
        if self.rng.chance(15):
            self.line(indent, "reserved 100 to 200, 1000;")
        if self.syntax == "proto2":
            self.proto2_parts(indent, used, next(numbers), message)

    def proto2_parts(self, indent, used, number, message):
        if self.rng.chance(40):
            self.line(indent, "extensions 300 to 400, 500 to 600;")
            message.extensible = True
        if self.rng.chance(40):
            # The group's type is nested, and its field is called so in lower case.
            name = "Group%s" % self.rng.pick(["A", "Part", "Class", "Stub"])
            key = name.lower()
            if key not in used:
                used.add(key)
                self.package.cpp.add(message.cpp_name + "_" + name)
                self.package.curious.append(message.cpp_name + "_" + name)
                self.line(indent, "%s group %s = %d {" % (
                    self.rng.pick(["optional", "repeated"]), name, number))
                self.line(indent + "  ", "optional bytes %s = 1;" % self.field_name(set()))
                self.block(indent + "}\n")
                self.own.append(Message(message.full_name + "." + name,
                                        message.cpp_name + "_" + name, False))

    def field_type(self, message):
        kind = self.rng.below(10)
        if kind < 5:
            return self.rng.pick(SCALARS)
        if kind == 5 and self.enums:
            return "." + self.rng.pick(self.enums)[0]
        # A message with payload fields below another one is refused.
        candidates = [m for m in self.own + self.visible + [message] if not m.payload]
        return "." + self.rng.pick(candidates).full_name if candidates else "bytes"

    def field(self, indent, used, number, message):
        kind = self.field_type(message)
        label = self.rng.pick(["", "", "repeated ", "optional "])
        options = []
        if self.syntax == "proto2":
            label = label or "optional "
            if kind in SCALARS and self.rng.chance(15):
                label = "required "
            if label == "optional " and kind == "string" and self.rng.chance(50):
                options.append("default = %s" % self.string("a\\\"\\n\\377?\\?/"))
            if label == "optional " and kind == "double" and self.rng.chance(50):
                options.append("default = %s" % self.rng.pick(["inf", "-inf", "nan", "1e300"]))
        if self.rng.chance(10):
            options.append("deprecated = true")
        if kind == "string" and self.rng.chance(10):
            options.append("ctype = %s" % self.rng.pick(["CORD", "STRING_PIECE"]))
        self.block(self.comments.leading(indent, 30))
        self.line(indent, "%s%s %s%s=%s%d%s;" % (
            label, kind, self.field_name(used), self.comments.inline(), self.comments.inline(),
            number, " [%s]" % ", ".join(options) if options else ""))

    def payload_fields(self, indent, used, numbers):
        """Also such as are called like each other's functions."""
        names = [self.field_name(used, "payload_field")]
        for prefix in self.rng.sample(["set_", "clear_", "add_", "verbena_"], self.rng.below(3)):
            name = prefix + names[0].lower()
            key = name.replace("_", "")
            if key not in used:
                used.add(key)
                names.append(name)
        for name in names + [self.field_name(used, "payload_field")]:
            label = self.rng.pick(["", "repeated "])
            if self.syntax == "proto2":
                label = label or "optional "
            others = ", deprecated = true" if self.rng.chance(20) else ""
            self.block(self.comments.leading(indent, 40))
            self.line(indent, "%sbytes %s = %d [(.verbena.placement) = PAYLOAD%s];" % (
                label, name, next(numbers), others))

    # ---- Services ---------------------------------------------------------------------------

    def service_name(self):
        """A word, or a name that only exists in C++, which the service must not have there."""
        for _ in range(200):
            if self.package.curious and self.rng.chance(25):
                name = self.rng.pick(self.package.curious)
            elif self.package.prefix and self.rng.chance(85):
                name = self.package.prefix + self.word("service")
            else:
                name = self.word("service")
                if self.package.prefix and name not in exclusions.SERVICES_OF_ANY_NAMESPACE:
                    continue
            if name not in self.package.schema:
                self.package.schema.add(name)
                return name
        raise AssertionError("no name is free for a service")

    def service(self):
        name = self.service_name()
        self.block(self.comments.leading("", 70))
        self.line("", "service%s%s {" % (self.comments.inline(), name))
        if self.rng.chance(15):
            self.line("  ", "option deprecated = true;")
        self.custom_option("  ", "ServiceOptions")
        methods = []
        used = set()
        for _ in range(self.rng.pick([0, 1, 2, 3, 3, 4, 5])):
            methods.append(self.method(used))
            self.stray("  ")
        self.block("}\n\n")
        self.services.append({"file": self.path, "full_name": self.package.qualified(name),
                              "methods": methods})

    def method(self, used):
        name = self.word("method")
        if used and self.rng.chance(20):
            name = self.rng.pick(sorted(used)) + "_"
        while name in used:
            name += "_"
        used.add(name)
        streams = [self.rng.chance(12), self.rng.chance(12)]
        types = []
        for stream in streams:
            full_name = self.rng.pick(self.visible + self.own).full_name
            types.append("%s.%s" % ("stream " if stream else "", full_name))
        self.block(self.comments.leading("  ", 60))
        space = self.comments.inline
        head = "rpc%s%s%s(%s%s)%sreturns (%s)" % (space(), name, space(), types[0], space(),
                                                  space(), types[1])
        style = self.rng.below(4)
        if style == 0:
            self.line("  ", head + " {}")
        elif style == 1:
            self.block("  " + head + " {\n")
            self.line("    ", self.rng.pick([
                "option deprecated = true;", "option idempotency_level = IDEMPOTENT;"]))
            self.custom_option("    ", "MethodOptions")
            self.block("  }\n")
        else:
            self.line("  ", head + ";")
        return {"name": name, "streaming": streams[0] or streams[1]}

    def custom_option(self, indent, extended):
        for full_name, value in self.options:
            if extended in full_name and self.rng.chance(40):
                self.line(indent, "option (.%s) = %s;" % (full_name, value))

    # ---- The file ---------------------------------------------------------------------------

    def head(self, imports, public, file_options):
        if self.rng.chance(30):
            self.block("\ufeff")
        self.block(self.comments.leading(""))
        self.line("", "syntax = %s;" % self.string(self.syntax))
        self.stray("")
        if self.package.name:
            self.block(self.comments.leading("", 30))
            self.line("", "package %s;" % self.package.name)
        for path in imports:
            self.line("", "import %s%s;" % ("public " if path in public else "",
                                            self.string(path)))
        self.block(PAYLOAD_IMPORT)
        for option in file_options:
            self.line("", "option %s;" % option)
        self.block("\n")

    def text(self):
        text = "".join(self.out)
        used = "verbena.placement" in text
        return text.replace(PAYLOAD_IMPORT, "import \"verbena/options.proto\";\n" if used else "")
