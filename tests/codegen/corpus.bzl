# SPDX-License-Identifier: Apache-2.0
"""The .proto files in tests/codegen/corpus, and the .fbs files in tests/codegen/corpus/fbs."""

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

# Those with mocks, too.
MOCKS = [
    "helper_names",
    "keywords",
]

_FBS = "//tests/codegen/corpus/fbs"

# The same of .fbs files; mixed has a .proto file, too.
FBS_CORPUS = {
    "comments": (["comments.fbs"], []),
    "dash-and.dots.v1": (["sub/dir/dash-and.dots.v1.fbs"], [":letter_case"]),
    "features": (["features.fbs"], [_FBS + "/imported"]),
    "formats": (["formats.fbs"], [_FBS + "/imported"]),
    "generated": ([":write_schema"], [_FBS + "/imported"]),
    "helper_names": (["helper_names.fbs"], []),
    "imports": (["imports.fbs"], [
        ":comments",
        _FBS + "/imported",
    ]),
    "keywords": (["keywords.fbs"], []),
    "letter_case": (["letter_case.fbs"], []),
    "long_names": (["long_names.fbs"], []),
    "mixed": ([
        "mixed.proto",
        "mixed_flat.fbs",
    ], []),
    "namespace_absl": (["namespace_absl.fbs"], []),
    "namespace_flatbuffers": (["namespace_flatbuffers.fbs"], []),
    "namespace_google": (["namespace_google.fbs"], []),
    "namespace_std": (["namespace_std.fbs"], []),
    "namespace_verbena": (["namespace_verbena.fbs"], []),
    "namespaces": (["namespaces.fbs"], []),
    "no_namespace": (["no_namespace.fbs"], []),
    "no_services": (["no_services.fbs"], []),
    "streaming": (["streaming.fbs"], []),
    "type_names": (["type_names.fbs"], []),
}

FBS_MOCKS = [
    "helper_names",
    "keywords",
    "long_names",
    "mixed",
    "namespaces",
    "no_namespace",
    "no_services",
]

MOCK_LIBRARIES = (
    ["//tests/codegen/corpus:%s_mock" % name for name in MOCKS] +
    ["%s:%s_mock" % (_FBS, name) for name in FBS_MOCKS]
)
