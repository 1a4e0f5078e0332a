# SPDX-License-Identifier: Apache-2.0
"""Names that are legal in a schema and awkward in C++. exclusions.py says where each may stand."""

# ISO C++ keywords and alternative tokens up to C++17.
KEYWORDS = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t
char32_t class compl const const_cast constexpr continue decltype default delete do double
dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
wchar_t while xor xor_eq""".split()

# Those of C++20, which protoc 3.21 does not know.
KEYWORDS_20 = """char8_t co_await co_return co_yield concept consteval constinit requires""".split()

# Macros that are spelled like a name.
MACROS = "EOF NULL alloca assert errno linux offsetof stderr stdin stdout unix".split()

# Macros of the headers below generated code: methods and services give way to them.
HEADER_MACROS = """CHECK DCHECK EINVAL EXPECT_EQ FAIL FD_SET INFINITY INT_MAX LOG M_PI NAN SIGINT
S_ISREG TEST VLOG major sa_handler st_atime timercmp""".split()

# Not reserved, but a parser may trip over them.
CONTEXTUAL = "final import module override transaction_safe".split()

# What generated classes have themselves, in any of the classes.
GENERATED = """AddVerbenaMethod AsyncInterface NewStub Service Stub StubInterface VerbenaCollect
VerbenaMethods VerbenaPlace async channel_ service_full_name verbena_message_
verbena_methods""".split()

# Parameters, locals and types that generated code names.
GENERATED_LOCALS = """attachments buffer channel context done field kCodec message mutable_message
placed request response service""".split()

# Namespaces and types of the libraries below.
LIBRARIES = """Any Arena Buffer Channel ClientContext Codec DoneCallback Empty Message MessageLite
MethodDescriptor QueuePair Server ServerContext Status StatusOr absl flatbuffers google grpc
internal protobuf std verbena""".split()

# Of the standard library.
STANDARD = """function int32_t max memory min move optional pair shared_ptr size_t string
string_view uint8_t unique_ptr variant vector""".split()

# Members of protoc's classes, and the prefixes and suffixes of them.
PROTOC = """ByteSizeLong Clear CopyFrom GetArena GetMetadata IsInitialized MergeFrom New Swap
SerializeToString UnsafeArenaSwap cached_has_bits default_instance descriptor has_value
kFooFieldNumber mutable_value release_value set_value value value_size""".split()

# Nothing of the above: case, underscores, digits, length.
SHAPES = """A B a a1 A1_2 ALL_CAPS x_ x__y _x X mixedCase Mixed_Case snake_case lower
AVeryLongNameThatItsAuthorsCouldNotAgreeToShortenAndThatFillsMoreThanHalfOfALineByItself
T0 e E1 main id type name key self None True lambda""".split()

ALL = (KEYWORDS + KEYWORDS_20 + MACROS + HEADER_MACROS + CONTEXTUAL + GENERATED +
       GENERATED_LOCALS + LIBRARIES + STANDARD + PROTOC + SHAPES)
