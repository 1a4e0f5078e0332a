// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/names.h"

#include <algorithm>
#include <iterator>

#include "verbena/codegen/macro_names.h"

namespace verbena::codegen {
namespace {

// Each table is sorted by byte value, for binary search.

// ISO C++20 [lex.key] tables 5 and 6, and the macros of the C headers that protobuf and abseil
// include and that no type can be called as, either. The others are in macro_names.cc.
constexpr std::string_view kCppReserved[] = {
    "EOF",          "NULL",          "alignas",      "alignof",   "alloca",
    "and",          "and_eq",        "asm",          "assert",    "auto",
    "bitand",       "bitor",         "bool",         "break",     "case",
    "catch",        "char",          "char16_t",     "char32_t",  "char8_t",
    "class",        "co_await",      "co_return",    "co_yield",  "compl",
    "concept",      "const",         "const_cast",   "consteval", "constexpr",
    "constinit",    "continue",      "decltype",     "default",   "delete",
    "do",           "double",        "dynamic_cast", "else",      "enum",
    "errno",        "explicit",      "export",       "extern",    "false",
    "float",        "for",           "friend",       "goto",      "if",
    "inline",       "int",           "linux",        "long",      "mutable",
    "namespace",    "new",           "noexcept",     "not",       "not_eq",
    "nullptr",      "offsetof",      "operator",     "or",        "or_eq",
    "private",      "protected",     "public",       "register",  "reinterpret_cast",
    "requires",     "return",        "short",        "signed",    "sizeof",
    "static",       "static_assert", "static_cast",  "stderr",    "stdin",
    "stdout",       "struct",        "switch",       "template",  "this",
    "thread_local", "throw",         "true",         "try",       "typedef",
    "typeid",       "typename",      "union",        "unix",      "unsigned",
    "using",        "virtual",       "void",         "volatile",  "wchar_t",
    "while",        "xor",           "xor_eq",
};

// Members of the class that a service becomes (a member can't have its class's name), and the
// namespaces that generated code names, which a class beside them would hide.
constexpr std::string_view kServiceHelpers[] = {
    "AsyncInterface", "NewStub",           "Service", "Stub",
    "StubInterface",  "VerbenaMethods",    "absl",    "flatbuffers",
    "google",         "service_full_name", "std",     "testing",
    "verbena",
};

// Names of the nested classes and of what they declare or inherit beside the user's methods.
constexpr std::string_view kMethodHelpers[] = {
    "AddVerbenaMethod", "AsyncInterface", "Service", "Stub",
    "StubInterface",    "VerbenaMethods", "async",   "channel_",
    "verbena_methods",
};

// Members of the class around a message, beside the accessors of its fields.
constexpr std::string_view kFieldHelpers[] = {
    "Clear", "VerbenaCollect", "VerbenaPlace", "message", "mutable_message", "verbena_message_",
};

// Types and functions that the runtime's headers bring into namespace verbena. The package of that
// name is the project's own, so this need not foresee later ones.
constexpr std::string_view kRuntimeNames[] = {
    "AccessFlags",
    "Address",
    "AsyncEvent",
    "AtomicTarget",
    "Attachment",
    "AttachmentList",
    "BlockMemory",
    "BlockPool",
    "Buffer",
    "BufferBlock",
    "CallUnary",
    "Capabilities",
    "Channel",
    "ChannelOptions",
    "ChannelStatistics",
    "ClientCall",
    "ClientConnection",
    "ClientContext",
    "Codec",
    "CompletionChannel",
    "CompletionFlags",
    "CompletionOpcode",
    "CompletionQueue",
    "CompletionStatus",
    "CompletionStatusName",
    "ConnectOptions",
    "ConnectionEvent",
    "ConnectionManager",
    "ConnectionRequest",
    "CreateChannel",
    "Device",
    "DoneCallback",
    "EndpointOptions",
    "Executor",
    "FlatFormat",
    "FlatMessage",
    "FlatMessageAllocator",
    "FlatMessageBuilder",
    "FlatMessageBytes",
    "Listener",
    "LocalKey",
    "MemoryRegion",
    "MemoryWindow",
    "MessageMemory",
    "MethodDescriptor",
    "MethodId",
    "Opcode",
    "PollOptions",
    "PrivateData",
    "ProtectionDomain",
    "QueuePair",
    "QueuePairCounters",
    "QueuePairOptions",
    "QueuePairState",
    "RecvWorkRequest",
    "RemoteKey",
    "RemoteTarget",
    "ScatterGatherEntry",
    "SendFlags",
    "SendWorkRequest",
    "Server",
    "ServerBuilder",
    "ServerContext",
    "ServerOptions",
    "ServerRuntime",
    "ServerStatistics",
    "Service",
    "SharedReceiveQueue",
    "SharedReceiveQueueOptions",
    "StartUnary",
    "VerifyFlatBuffer",
    "WindowBinding",
    "WorkCompletion",
    "kFlatBuffersCodec",
};

template <size_t N>
bool Contains(const std::string_view (&sorted)[N], std::string_view name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name);
}

static_assert(std::is_sorted(std::begin(kCppReserved), std::end(kCppReserved)));
static_assert(std::is_sorted(std::begin(kServiceHelpers), std::end(kServiceHelpers)));
static_assert(std::is_sorted(std::begin(kMethodHelpers), std::end(kMethodHelpers)));
static_assert(std::is_sorted(std::begin(kFieldHelpers), std::end(kFieldHelpers)));

bool IsHelper(NameKind kind, std::string_view name) {
  switch (kind) {
    case NameKind::kService:
      return Contains(kServiceHelpers, name);
    case NameKind::kMethod:
      return Contains(kMethodHelpers, name);
    case NameKind::kOther:
      return false;
  }
  return false;
}

// What a field's class has because of it, beside the function that is called as the field is. The
// prefixes differ in their first letters, so that two fields never have one of these in common.
std::vector<std::string> DerivedNames(const std::string& name) {
  return {"set_" + name, "add_" + name, "clear_" + name, "verbena_" + name + "_"};
}

}  // namespace

bool IsReservedInCpp(std::string_view name) { return Contains(kCppReserved, name); }

std::vector<std::string> CppNames(NameKind kind, const std::vector<std::string>& names,
                                  const std::set<std::string>& taken) {
  // Every sibling's own spelling counts as used, so that `class` avoids a sibling `class_`.
  std::set<std::string> used = taken;
  used.insert(names.begin(), names.end());
  std::vector<std::string> result;
  for (const std::string& name : names) {
    std::string cpp_name = name;
    if (IsReservedInCpp(name) || IsMacro(name) || IsHelper(kind, name) || taken.contains(name)) {
      do {
        cpp_name += '_';
      } while (used.contains(cpp_name) || IsMacro(cpp_name) || IsHelper(kind, cpp_name));
      used.insert(cpp_name);
    }
    result.push_back(cpp_name);
  }
  return result;
}

std::vector<std::string> CppFieldNames(const std::vector<std::string>& names) {
  std::set<std::string> derived;
  for (const std::string& name : names) {
    for (const std::string& other : DerivedNames(name)) derived.insert(other);
  }
  std::set<std::string> used = derived;
  used.insert(names.begin(), names.end());
  const auto is_free = [&used](const std::string& name) {
    return !used.contains(name) && !IsMacro(name) && !Contains(kFieldHelpers, name);
  };
  std::vector<std::string> result;
  for (const std::string& name : names) {
    std::string cpp_name = name;
    if (IsMacro(name) || Contains(kFieldHelpers, name) || derived.contains(name)) {
      std::vector<std::string> members;
      do {
        cpp_name += '_';
        members = DerivedNames(cpp_name);
        members.push_back(cpp_name);
      } while (!std::all_of(members.begin(), members.end(), is_free));
      used.insert(members.begin(), members.end());
    }
    result.push_back(cpp_name);
  }
  return result;
}

std::string NextComponent(std::string_view cpp_namespace, std::string_view outer) {
  if (!outer.empty()) {
    const std::string start = std::string(outer) + "::";
    if (!cpp_namespace.starts_with(start)) return "";
    cpp_namespace.remove_prefix(start.size());
  }
  return std::string(cpp_namespace.substr(0, cpp_namespace.find("::")));
}

std::set<std::string> RuntimeNames() {
  return std::set<std::string>(std::begin(kRuntimeNames), std::end(kRuntimeNames));
}

}  // namespace verbena::codegen
