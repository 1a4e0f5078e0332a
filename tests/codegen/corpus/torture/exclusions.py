# SPDX-License-Identifier: Apache-2.0
"""Which words may stand where, and what is left out with its reason.

"protoc": protoc 3.21 itself writes C++ that does not compile, whatever Verbena does.
"refused": the code generator refuses it (codegen/README.md); refused_test.py has it.
"""

import words

# protoc takes names of messages and fields as they are, unless it knows the keyword.
_UNKNOWN_TO_PROTOC = set(words.KEYWORDS_20 + words.MACROS + ["char16_t", "char32_t"]) - {"NULL"}

# What the names of values and extensions in C++ are made of; and in generated code.
ENUM_SUFFIXES = ["_MIN", "_MAX", "_ARRAYSIZE", "_Name", "_Parse", "_IsValid", "_descriptor"]

# protoc: members of its classes, and types that it names without a namespace, which fields, values
# and types of the same name hide or double.
_OF_PROTOC = (set(words.PROTOC) - {"kFooFieldNumber"}) | {"int32_t", "size_t", "std", "uint8_t"}

# protoc: parameters of its functions, which a type of the same name hides.
_PARAMETERS = {"a", "b", "arena", "from", "name", "other", "value"}

# flatc: what its grammar has, and what it does not know to be reserved.
_FBS_WORDS = {"True", "bool", "double", "float", "int", "long", "short", "string", "false", "true"}
_FLATC = (_FBS_WORDS | set(words.MACROS) | _OF_PROTOC - {"value"} |
          {"char16_t", "char32_t", "char8_t", "consteval", "constinit", "flatbuffers"})

# Place -> words that must not stand there.
_EXCLUDED = {
    # protoc; some are also refused as a request or response.
    "message": _UNKNOWN_TO_PROTOC | _OF_PROTOC | _PARAMETERS,
    "nested": _UNKNOWN_TO_PROTOC | _OF_PROTOC | _PARAMETERS,
    "enum": _UNKNOWN_TO_PROTOC | _OF_PROTOC | _PARAMETERS,
    "value": _UNKNOWN_TO_PROTOC | _OF_PROTOC,
    "field": _UNKNOWN_TO_PROTOC | _OF_PROTOC,
    "oneof": _UNKNOWN_TO_PROTOC | _OF_PROTOC,
    "payload_field": _UNKNOWN_TO_PROTOC | _OF_PROTOC,
    # refused; the types protoc.
    "package": set(words.KEYWORDS + words.KEYWORDS_20 + words.MACROS +
                   ["int32_t", "size_t", "std", "uint8_t"]),
    # Verbena's names, whatever they are.
    "service": set(),
    "method": set(),
    # flatc writes namespaces, and names of std and flatbuffers, as they are and without "::".
    "fbs_namespace": (set(words.KEYWORDS + words.KEYWORDS_20 + words.MACROS + words.LIBRARIES +
                          words.STANDARD)),
    # flatc: keywords have their '_' as names of tables, but not where other types name them;
    # see plain_tables().
    "fbs_type": _FLATC | set(words.KEYWORDS + words.KEYWORDS_20 + words.CONTEXTUAL) |
                {"absl", "google", "verbena"},
    "fbs_table": _FLATC | {"absl", "google", "verbena"},
    "fbs_field": _FLATC,
    "fbs_value": set(words.MACROS),
    "fbs_service": _FBS_WORDS,
    "fbs_method": _FBS_WORDS,
}

# protoc and flatc take these for types and fields; only Verbena's names give way.
_NAMED_BY_VERBENA = {"service", "method", "fbs_service", "fbs_method"}
for _place in set(_EXCLUDED) - _NAMED_BY_VERBENA:
    _EXCLUDED[_place] = _EXCLUDED[_place] | set(words.HEADER_MACROS)

_ALLOWED = {place: sorted(set(words.ALL) - excluded) for place, excluded in _EXCLUDED.items()}


def allowed(place):
    return _ALLOWED[place]


# Packages that generated code names with a leading "::". What is in them has a prefix.
LIBRARY_PACKAGES = ["absl", "flatbuffers", "google", "google.protobuf", "grpc", "std", "verbena"]

FBS_LIBRARY_NAMESPACES = ["absl", "google", "verbena"]

# Services that may be called so beside the libraries' namespaces: they are in the table.
SERVICES_OF_ANY_NAMESPACE = ["absl", "google", "std", "verbena"]

# flatc: a '\\r' ends a comment there, and see comments.py.
FBS_COMMENTS = {"carriage_return", "double_braces"}
# flatc copies comments of types into its header as they are, with a '\\' at the end of a line.
FBS_TYPE_COMMENTS = FBS_COMMENTS | {"bidirectional", "splice", "trigraph"}
