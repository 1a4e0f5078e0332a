#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes legal and nasty .fbs files from a seed, the same ones for the same seed.

usage: write_fbs.py SEED FOLDER IMPORT_PREFIX

Like write_protos.py; its files are these, and its manifest is manifest_fbs.json.

   flat_base.fbs          enums, structs, unions and tables of two namespaces
   flat_middle.fbs        includes it; services, a root type
   sub/flat-leaf.v1.fbs   includes flat_middle.fbs; services of several namespaces
"""

import json
import os
import sys

import exclusions
import words
from comments import CommentWriter
from rng import Random

# File -> how many services it has.
SERVICES = {"flat_middle.fbs": 3, "sub/flat-leaf.v1.fbs": 5}

INTEGERS = "byte ubyte short ushort int uint long ulong int8 uint16 int32 uint64".split()
SCALARS = INTEGERS + "bool float double float32 float64".split()
DEFAULTS = {"float": ["1.5", "inf", "-inf", "nan", "1e10"], "double": ["-0.5", "+inf", "nan"],
            "bool": ["true", "false", "1"]}

# What flatc makes of a type, which a service may be called, too.
TABLE_NAMES = ["%s_", "%sBuilder", "Create%s", "Create%sDirect", "%sT"]
ENUM_NAMES = ["%s_MIN", "%s_MAX", "EnumName%s", "EnumNames%s", "EnumValues%s"]
UNION_NAMES = ENUM_NAMES + ["Verify%s", "Verify%sVector", "%sTraits"]


class Namespace:
    """What is declared in one namespace, also by several files."""

    def __init__(self, name, prefix):
        self.name = name
        self.prefix = prefix  # Of every name in it.
        self.taken = set()
        self.curious = []  # Names that exist in C++ only.

    def qualified(self, name):
        return ".".join(part for part in [self.name, name] if part)


class FbsWriter:
    """Writes one file."""

    def __init__(self, rng, path, known, type_names, field_names):
        self.rng = rng
        self.type_names = type_names  # Of all files: flatc wants no field called as a type is.
        self.field_names = field_names
        self.path = path
        self.comments = CommentWriter(rng, exclusions.FBS_TYPE_COMMENTS)
        self.service_comments = CommentWriter(rng, exclusions.FBS_COMMENTS)
        self.tables, self.structs, self.enums, self.unions = [list(each) for each in known]
        self.services = []
        self.out = []
        self.namespace = None

    def known(self):
        return [self.tables, self.structs, self.enums, self.unions]

    # ---- Names and text ---------------------------------------------------------------------

    def type_name(self, derived, place="fbs_type"):
        names = self.namespace
        for _ in range(200):
            name = names.prefix + self.rng.pick(exclusions.allowed(place))
            if self.rng.chance(15):
                name += self.rng.pick(["_", "_1", "Request"])
            made = {name} | {form % name for form in derived + TABLE_NAMES}
            if not made & names.taken and name not in self.field_names:
                self.type_names.add(name)
                names.taken |= made
                names.curious += sorted(form % name for form in derived)
                return name
        raise AssertionError("no name is free for a type")

    def member(self, used, place):
        for _ in range(200):
            name = self.rng.pick(exclusions.allowed(place))
            if place == "fbs_field":
                name = name.lower()  # flatc warns of others.
            key = name.upper().strip("_")
            if key and key not in used and not (place == "fbs_field" and name in self.type_names):
                if place == "fbs_field":
                    self.field_names.add(name)
                used |= {key, key + "_TYPE"}
                return name
        raise AssertionError("no name is free for a member")

    def comment(self, indent, percent=50):
        """flatc keeps "///" before a declaration, and forgets the others."""
        self.out.append(self.comments.leading(indent, percent))

    def service_comment(self, indent, percent):
        self.out.append(self.service_comments.leading(indent, percent))

    def line(self, text):
        plain = self.comments.trailing() if self.rng.chance(50) else "\n"
        self.out.append(text + plain.replace("///", "//-"))

    def enter(self, namespace):
        if namespace is not self.namespace:
            self.line("namespace %s;" % namespace.name if namespace.name else "namespace;")
        self.namespace = namespace

    # ---- Types ------------------------------------------------------------------------------

    def enum(self):
        name = self.type_name(ENUM_NAMES)
        flags = self.rng.chance(30)
        kind = self.rng.pick(["ubyte", "uint", "ulong"] if flags else INTEGERS)
        self.comment("")
        self.out.append("enum %s : %s%s {\n" % (name, kind, " (bit_flags)" if flags else ""))
        used = {"MIN", "MAX"}
        number = 0 if flags else self.rng.pick([0, 0, 1, 5])
        for i in range(self.rng.between(1, 5)):
            self.comment("  ", 20)
            value = self.member(used, "fbs_value")
            self.out.append("  %s = %d,\n" % (value, number) if self.rng.chance(50) or i == 0
                            else "  %s,\n" % value)
            number += 1
        self.out.append("}\n")
        self.enums.append(self.namespace.qualified(name))

    def struct(self):
        name = self.type_name([])
        align = " (force_align: 16)" if self.rng.chance(30) else ""
        self.comment("")
        self.out.append("struct %s%s {\n" % (name, align))
        used = {name.upper().strip("_")}
        for _ in range(self.rng.between(1, 4)):
            kind = self.rng.pick(SCALARS + self.structs[-2:])
            if self.rng.chance(20):
                kind = "[%s:%d]" % (kind, self.rng.between(1, 4))
            self.comment("  ", 20)
            self.line("  %s:%s;" % (self.member(used, "fbs_field"), kind))
        self.out.append("}\n")
        self.structs.append(self.namespace.qualified(name))

    def union(self):
        if not self.plain_tables():
            return
        name = self.type_name(UNION_NAMES)
        used = {"NONE"}
        members = ["%s: %s" % (self.member(used, "fbs_value"), table)
                   for table in self.rng.sample(self.plain_tables(), self.rng.between(1, 3))]
        self.comment("")
        self.line("union %s { %s }" % (name, ", ".join(members)))
        self.unions.append(self.namespace.qualified(name))

    def plain_tables(self):
        """Those that are not called as C++ reserves: flatc forgets that where fields name them."""
        return [t for t in self.tables if t.split(".")[-1] in exclusions.allowed("fbs_type")]

    def table(self):
        name = self.type_name(["%sBuilder", "Create%s", "%sT"], "fbs_table")
        self.comment("")
        self.out.append("table %s%s {\n" % (name, self.rng.pick(["", "", " (original_order)"])))
        used = {name.upper().strip("_")}
        fields = [self.field(used) for _ in range(self.rng.between(0, 6))]
        ids = self.rng.chance(25) and not any("union" in kinds for _, kinds in fields)
        order = self.rng.sample(list(range(len(fields))), len(fields))
        for (text, kinds), number in zip(fields, order):
            attributes = sorted(kinds - {"union"}) + (["id: %d" % number] if ids else [])
            self.comment("  ", 30)
            self.line("  %s%s;" % (text, " (%s)" % ", ".join(attributes) if attributes else ""))
        self.out.append("}\n")
        self.tables.append(self.namespace.qualified(name))

    def field(self, used):
        """"name:type = default", and its attributes."""
        name = self.member(used, "fbs_field")
        kind = self.rng.below(10)
        if kind < 3:
            scalar = self.rng.pick(SCALARS)
            value = self.rng.pick(DEFAULTS.get(scalar, ["7"]))
            default = self.rng.pick(["", " = null", " = " + value])
            return "%s:%s%s" % (name, scalar, default), set(
                ["deprecated"] if self.rng.chance(10) and "null" not in default else [])
        if kind == 3 and self.enums:
            return "%s:%s = null" % (name, self.rng.pick(self.enums)), set()
        if kind == 4 and self.unions and name in exclusions.allowed("fbs_type"):
            union = self.rng.pick(self.unions)
            # flatc: the verifier of a vector of unions is called without its namespace.
            own = union.rpartition(".")[0] == self.namespace.name
            form = "%s:[%s]" if own and self.rng.chance(40) else "%s:%s"
            return form % (name, union), {"union"}
        if kind == 5 and self.plain_tables():
            nested = {"nested_flatbuffer: \"%s\"" % self.rng.pick(self.plain_tables())}
            return "%s:[ubyte]" % name, nested if self.rng.chance(70) else {"flexbuffer"}
        if kind == 6 and self.structs:
            form = self.rng.pick(["%s:%s", "%s:[%s]"])
            return form % (name, self.rng.pick(self.structs)), set()
        if kind == 7 and self.plain_tables():
            form = self.rng.pick(["%s:%s", "%s:[%s]"])
            return form % (name, self.rng.pick(self.plain_tables())), set()
        required = {"required"} if self.rng.chance(20) else set()
        kind = self.rng.pick(["string", "[string]", "[ubyte]", "[double]"])
        return "%s:%s" % (name, kind), required

    # ---- Services ---------------------------------------------------------------------------

    def service_name(self):
        names = self.namespace
        for _ in range(200):
            if names.curious and self.rng.chance(30):
                name = self.rng.pick(names.curious)
            else:
                name = names.prefix + self.rng.pick(exclusions.allowed("fbs_service"))
            if ("service", name) not in names.taken:
                names.taken.add(("service", name))
                return name
        raise AssertionError("no name is free for a service")

    def service(self):
        name = self.service_name()
        self.service_comment("", 70)
        self.out.append("rpc_service %s {\n" % name)
        methods = []
        used = set()
        for _ in range(self.rng.between(1, 4)):  # flatc wants one.
            method = self.rng.pick(exclusions.allowed("fbs_method"))
            while method in used:
                method += "_"
            used.add(method)
            streaming = self.rng.pick(["client", "server", "bidi"]) if self.rng.chance(20) else ""
            attributes = ["streaming: \"%s\"" % streaming] if streaming else []
            if self.rng.chance(10):
                attributes.append("idempotent")
            if self.rng.chance(5) and not streaming:
                attributes.append("streaming: \"none\"")
            self.service_comment("  ", 60)
            self.line("  %s(%s):%s%s;" % (method, self.rng.pick(self.tables),
                                          self.rng.pick(self.tables),
                                          " (%s)" % ", ".join(attributes) if attributes else ""))
            methods.append({"name": method, "streaming": bool(streaming)})
        self.out.append("}\n\n")
        self.services.append({"file": self.path, "full_name": self.namespace.qualified(name),
                              "methods": methods})

    def types(self, count):
        for _ in range(count):
            self.rng.pick([self.enum, self.struct, self.union, self.table, self.table])()
        self.table()


class FbsSet:
    """All files of one seed."""

    def __init__(self, seed, import_prefix):
        self.rng = Random(seed + 1000000)
        self.seed = seed
        self.import_prefix = import_prefix
        self.files = {}
        self.services = []
        self.names = {}
        self.type_names = set()
        self.field_names = set()

    def namespace(self, tag):
        kind = self.rng.below(8)
        prefix = ""
        if kind == 0:
            name, prefix = "", "F%d%s" % (self.seed, tag)
        elif kind == 1:
            name = "%s.f%d%s" % (self.rng.pick(exclusions.FBS_LIBRARY_NAMESPACES), self.seed, tag)
        else:
            parts = [self.rng.pick(exclusions.allowed("fbs_namespace"))
                     for _ in range(self.rng.below(5))]
            name = ".".join(["f%d" % self.seed, tag] + parts)
        if name not in self.names:
            self.names[name] = Namespace(name, prefix)
        return self.names[name]

    def write(self, name, namespaces, includes, known, types):
        writer = FbsWriter(self.rng, self.import_prefix + "/" + name, known, self.type_names,
                           self.field_names)
        if self.rng.chance(30):
            writer.out.append("\ufeff")
        writer.out.append("// A comment that is not of a declaration.\n\n")
        for include in includes:
            writer.line("include \"%s/%s\";" % (self.import_prefix, include))
        for _ in range(self.rng.between(1, 2)):
            for namespace in namespaces:
                writer.enter(namespace)
                writer.types(types)
        return writer

    def finish(self, writer, name):
        for _ in range(SERVICES.get(name, 0)):
            writer.enter(self.rng.pick(sorted(self.names.values(), key=lambda n: n.name)))
            writer.service()
        if name == "flat_middle.fbs":
            writer.line("root_type %s;" % writer.tables[-1])
            writer.line("file_identifier \"F%03d\";" % (self.seed % 1000))
            writer.line("file_extension \"f\";")
        self.files[name] = "".join(writer.out)
        self.services += writer.services
        return writer.known()

    def write_all(self):
        first, second = self.namespace("na"), self.namespace("nb")
        base = self.finish(self.write("flat_base.fbs", [first, second], [], [[]] * 4, 3),
                           "flat_base.fbs")
        third = self.namespace("nc")
        middle = self.finish(self.write("flat_middle.fbs", [third, first], ["flat_base.fbs"], base,
                                        2), "flat_middle.fbs")
        fourth = self.namespace("nd")
        self.finish(self.write("sub/flat-leaf.v1.fbs", [fourth], ["flat_middle.fbs"], middle, 1),
                    "sub/flat-leaf.v1.fbs")


def main():
    seed, folder, import_prefix = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    schemas = FbsSet(seed, import_prefix)
    schemas.write_all()
    schemas.files["manifest_fbs.json"] = json.dumps(schemas.services, indent=1) + "\n"
    for name, text in schemas.files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
