// SPDX-License-Identifier: Apache-2.0
//
// What the emitter knows of one IDL file: plain data, the same for every IDL. A front end fills it;
// nothing in it refers to Protobuf or FlatBuffers but names and paths. Values; any thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbena::codegen {

enum class StreamingKind { kUnary, kClientStreaming, kServerStreaming, kBidirectional };

struct MethodModel {
  std::string name;       // As the IDL spells it: "SayHello".
  std::string full_name;  // Its identity on the wire: "pkg.Greeter/SayHello".
  std::string cpp_name;   // "SayHello", or "delete_".
  // What callers pass and handlers get, fully qualified: "::pkg::HelloRequest", the class of a
  // PlacedMessageModel, or "::verbena::FlatMessage<::pkg::HelloRequest>".
  std::string request_type;
  std::string response_type;
  // Joined by ", " the name of a `::verbena::Codec` of it; pieces, since a line may end between
  // them: "::verbena::kFlatBuffersCodec<::pkg::HelloRequest", "::verbena::FlatFormat{...}>".
  std::vector<std::string> request_codec;
  std::vector<std::string> response_codec;
  std::string comment;  // Lines as in the IDL, without "//". May be empty.
  StreamingKind streaming = StreamingKind::kUnary;
  int line = 0;  // In the IDL, from 1; 0 when it is not known.
  int column = 0;
};

struct ServiceModel {
  std::string name;             // As the IDL spells it: "Greeter".
  std::string full_name;        // "pkg.Greeter".
  std::string cpp_name;         // "Greeter", or "class_".
  std::string cpp_namespace;    // "a::b"; empty for the global namespace.
  std::string mock_stub_name;   // "MockGreeterStub".
  std::string mock_async_name;  // "MockGreeterAsync".
  std::string comment;
  std::vector<MethodModel> methods;
  int line = 0;  // As of a method.
  int column = 0;
};

// A field whose bytes travel outside of the message.
struct PlacedFieldModel {
  std::string cpp_name;  // Of its accessors: "payload", or "class_".
  std::string comment;
  uint32_t number = 0;  // What tells it from the others on the wire; not 0.
  bool repeated = false;
};

// A message type with such fields, which becomes a class around the message.
struct PlacedMessageModel {
  std::string name;          // As the IDL spells it, in its package: "Outer.Inner".
  std::string cpp_name;      // Of the class: "PlacedOuter_Inner".
  std::string message_type;  // Fully qualified C++ name of the message: "::pkg::Outer_Inner".
  std::vector<PlacedFieldModel> fields;  // At least one.
};

struct ServiceFile {
  std::string generator;    // Who writes it: "protoc-gen-verbena".
  std::string source_path;  // "dir/greeter.proto", as given to the IDL's compiler.
  std::string output_stem;  // What outputs are called, without extension: "dir/greeter".
  std::string header_path;  // How generated code includes its header: "dir/greeter.verbena.h".
  // Headers of the message types and of those classes for them that other files have, as #include
  // has them, without quotes; no duplicates.
  std::vector<std::string> message_headers;
  std::string codec_header;      // The header that declares the codecs of the methods.
  std::string placed_namespace;  // Of the classes around messages; as a service's cpp_namespace.
  std::vector<PlacedMessageModel> placed_messages;
  std::vector<ServiceModel> services;
};

}  // namespace verbena::codegen
