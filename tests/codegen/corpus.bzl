# SPDX-License-Identifier: Apache-2.0
"""The .proto files in tests/codegen/corpus."""

# Library -> its .proto file and its deps.
CORPUS = {
    "comments": ("comments.proto", []),
    "dash-and.dots.v1": ("dash-and.dots.v1.proto", []),
    "deep_package": ("deep_package.proto", []),
    "generated": (":write_schema", ["//tests/codegen/corpus/imported"]),
    "helper_names": ("helper_names.proto", []),
    "imports": ("imports.proto", [
        ":comments",
        "//tests/codegen/corpus/imported",
    ]),
    "in_a_folder": ("sub/dir/in_a_folder.proto", [":dash-and.dots.v1"]),
    "keywords": ("keywords.proto", []),
    "letter_case": ("letter_case.proto", []),
    "lite": ("lite.proto", []),
    "long_names": ("long_names.proto", []),
    "nested_types": ("nested_types.proto", []),
    "no_methods": ("no_methods.proto", []),
    "no_package": ("no_package.proto", []),
    "no_services": ("no_services.proto", []),
    "package_absl": ("package_absl.proto", []),
    "package_google": ("package_google.proto", []),
    "package_std": ("package_std.proto", []),
    "package_verbena": ("package_verbena.proto", []),
    "payload": ("payload.proto", ["//tests/codegen/corpus/imported"]),
    "payload_names": ("payload_names.proto", []),
    "payload_package": ("payload_package.proto", []),
    "payload_proto2": ("payload_proto2.proto", [":payload_names"]),
    "proto2": ("proto2.proto", []),
    "streaming": ("streaming.proto", []),
    "well_known": ("well_known.proto", []),
}
