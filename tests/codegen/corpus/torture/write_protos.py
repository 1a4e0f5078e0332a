#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes legal and nasty .proto files from a seed, the same ones for the same seed.

usage: write_protos.py SEED FOLDER IMPORT_PREFIX

Writes into FOLDER these files, which import each other as IMPORT_PREFIX/<file>, and manifest.json:
the services with their methods, for tests. What the code generator refuses is not in
them (refused_test.py has that), nor what exclusions.py lists.

   options.proto     options of the schema's own, and messages for them
   types.proto       messages and enums, fields marked PAYLOAD
   reexport.proto    imports types.proto publicly
   services.proto    services in the package of types.proto or below it
   legacy.proto      proto2: groups, extensions, required fields
   sub/leaf-v1.0.proto  a file name with '-' and '.'; imports the others, may be LITE_RUNTIME
"""

import json
import os
import sys

import exclusions
from proto_writer import Message, Package, SCALARS, SchemaWriter
from rng import Random

# File -> how many services it has.
SERVICES = {"reexport.proto": 3, "services.proto": 6, "legacy.proto": 4, "sub/leaf-v1.0.proto": 5}

WELL_KNOWN = {
    "any": ["Any"],
    "api": ["Api", "Method"],
    "descriptor": ["FileDescriptorProto", "DescriptorProto.ExtensionRange"],
    "duration": ["Duration"],
    "empty": ["Empty"],
    "field_mask": ["FieldMask"],
    "source_context": ["SourceContext"],
    "struct": ["Struct", "Value", "ListValue"],
    "timestamp": ["Timestamp"],
    "type": ["Type", "EnumValue"],
    "wrappers": ["StringValue", "BytesValue", "BoolValue", "DoubleValue"],
}


class SchemaSet:
    """All files of one seed."""

    def __init__(self, seed, import_prefix):
        self.rng = Random(seed)
        self.root = "t%d" % seed
        self.import_prefix = import_prefix
        self.files = {}
        self.services = []
        self.packages = {}

    def package(self, tag, below=None):
        """A package of its own, or one below another's."""
        kind = self.rng.below(10)
        prefix = ""
        if below is not None:
            name = below.name + "." + tag
        elif kind == 0:
            name, prefix = "", "T%d%s" % (self.packages_seed(), tag)
        elif kind == 1:
            name = self.rng.pick(exclusions.LIBRARY_PACKAGES)
            prefix = "T%d%s" % (self.packages_seed(), tag)
        elif kind == 2:
            name = "%s.%s%s" % (self.rng.pick(exclusions.LIBRARY_PACKAGES), self.root, tag)
        else:
            parts = [self.rng.pick(exclusions.allowed("package"))
                     for _ in range(self.rng.below(6))]
            name = ".".join([self.root, tag] + parts)
        if name in self.packages:  # A file does not see what another one of its package has.
            name, prefix = "%s.%s" % (self.root, tag), ""
        package = Package(name, prefix)
        # What is below a package can't be a name in it; a component is never a type's in any.
        package.schema |= set(name.split(".")) | {self.root, "tb", "tl", "tr", "ts", "to", "tt"}
        self.packages[name] = package
        return package

    def packages_seed(self):
        return int(self.root[1:])

    def path(self, name):
        return self.import_prefix + "/" + name

    def finish(self, writer, name):
        self.files[name] = writer.text()
        self.services += writer.services

    def well_known(self):
        files = self.rng.sample(sorted(WELL_KNOWN), self.rng.between(0, 3))
        paths = ["google/protobuf/%s.proto" % name for name in files]
        messages = [Message("google.protobuf." + each, each.replace(".", "_"), False)
                    for name in files for each in WELL_KNOWN[name]]
        return paths, messages

    def write_options(self):
        package = self.package("to")
        writer = SchemaWriter(self.rng, self.path("options.proto"), package, "proto2", [])
        writer.may_have_payload = False
        writer.head(["google/protobuf/descriptor.proto"], [], [])
        writer.message()
        writer.block("message %sValue { optional string text = 1; repeated int32 i = 2; }\n" %
                     package.prefix)
        self.options = []
        number = 50000 + 100 * self.packages_seed()
        for extended in ["FileOptions", "ServiceOptions", "MethodOptions"]:
            for kind, value in [("string", writer.string("a */ // \\\" \\\\ b")),
                                (package.prefix + "Value", "{ text: \"x\" i: [1, 2] }"),
                                ("bool", "true")]:
                number += 1
                name = "%sof_%s_%d" % (package.prefix.lower(), extended, number)
                writer.block("extend google.protobuf.%s { optional %s %s = %d; }\n" % (
                    extended, kind if kind in SCALARS else "." + package.qualified(kind), name,
                    number))
                self.options.append((package.qualified(name), value))
        self.finish(writer, "options.proto")

    def write_types(self):
        self.types_package = self.package("tt")
        paths, messages = self.well_known()
        writer = SchemaWriter(self.rng, self.path("types.proto"), self.types_package,
                              self.rng.pick(["proto2", "proto3"]), messages)
        writer.head(paths, [], [])
        for _ in range(self.rng.between(4, 7)):
            writer.message()
            if self.rng.chance(30):
                writer.enum("", self.types_package.schema, "", "")
        self.finish(writer, "types.proto")
        self.types = writer.own

    def write_services(self, name, package, syntax, imports, public, visible, own, lite=False):
        paths, messages = self.well_known()
        if syntax == "proto2" or lite:
            paths, messages = [], []
        writer = SchemaWriter(self.rng, self.path(name), package, syntax, visible + messages)
        writer.options = self.options
        file_options = ["java_package = %s" % writer.string("a.b"), "cc_enable_arenas = true"]
        if lite:
            file_options.append("optimize_for = LITE_RUNTIME")
        elif self.rng.chance(30):
            file_options.append("optimize_for = CODE_SIZE")
        for full_name, value in self.options:
            if "FileOptions" in full_name and self.rng.chance(40):
                file_options.append("(.%s) = %s" % (full_name, value))
        imports = [self.path(each) for each in imports + ["options.proto"]]
        writer.head(imports + paths,
                    [self.path(each) for each in public], self.rng.sample(file_options, 9))
        count = SERVICES[name]
        before = self.rng.below(count)  # Services stand before, between and after messages.
        for _ in range(before):
            if writer.visible or writer.own:
                writer.service()
                count -= 1
        for _ in range(own):
            writer.message()
        if self.rng.chance(50):
            writer.enum("", package.schema, "", "")
        if syntax == "proto2":
            self.extend(writer)
        for _ in range(count):
            writer.service()
        self.finish(writer, name)
        return writer.own

    def extend(self, writer):
        """Extensions, in the file and in a message."""
        for i, message in enumerate(m for m in writer.own if m.extensible):
            name = "%sext_%d" % (writer.package.prefix.lower(), i)
            writer.block("extend .%s { optional bytes %s = 300; repeated .%s %s_m = 301; }\n" % (
                message.full_name, name, message.full_name, name))
            writer.package.schema |= {name, name + "_m"}

    def write_all(self):
        self.write_options()
        self.write_types()
        own = self.write_services("reexport.proto", self.package("tr"), "proto3", ["types.proto"],
                                  ["types.proto"], self.types, 1)
        place = self.types_package
        if self.rng.chance(40) and place.name and not place.prefix:
            place = self.package("ts", below=place)
        self.write_services("services.proto", place, "proto3",
                            [self.rng.pick(["types.proto", "reexport.proto"])], [], self.types, 2)
        legacy = self.write_services("legacy.proto", self.package("tl"), "proto2", ["types.proto"],
                                     [], self.types, 4)
        lite = self.rng.chance(40)
        self.write_services("sub/leaf-v1.0.proto", self.package("tb"), "proto3",
                            ["reexport.proto", "legacy.proto"], [], self.types + own + legacy, 0,
                            lite)


def main():
    seed, folder, import_prefix = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    schemas = SchemaSet(seed, import_prefix)
    schemas.write_all()
    schemas.files["manifest.json"] = json.dumps(schemas.services, indent=1) + "\n"
    for name, text in schemas.files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
