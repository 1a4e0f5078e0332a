// SPDX-License-Identifier: Apache-2.0
//
// What the emitter knows of one IDL file: plain data, the same for every IDL. A front end fills it;
// nothing in it refers to Protobuf or FlatBuffers but names and paths. Values; any thread.

#pragma once

#include <string>
#include <vector>

namespace verbena::codegen {

enum class StreamingKind { kUnary, kClientStreaming, kServerStreaming, kBidirectional };

struct MethodModel {
  std::string name;           // As the IDL spells it: "SayHello".
  std::string full_name;      // Its identity on the wire: "pkg.Greeter/SayHello".
  std::string cpp_name;       // "SayHello", or "delete_".
  std::string request_type;   // Fully qualified C++ name: "::pkg::HelloRequest".
  std::string response_type;  // Likewise.
  std::string comment;        // Lines as in the IDL, without "//". May be empty.
  StreamingKind streaming = StreamingKind::kUnary;
  int line = 0;  // In the IDL, from 1; 0 when it is not known.
  int column = 0;
};

struct ServiceModel {
  std::string name;       // As the IDL spells it: "Greeter".
  std::string full_name;  // "pkg.Greeter".
  std::string cpp_name;   // "Greeter", or "class_".
  std::string comment;
  std::vector<MethodModel> methods;
};

struct ServiceFile {
  std::string source_path;    // "dir/greeter.proto", as given to the IDL's compiler.
  std::string header_path;    // How generated code includes its header: "dir/greeter.verbena.h".
  std::string cpp_namespace;  // "a::b"; empty for the global namespace.
  // Headers of the message types, as #include has them, without quotes; no duplicates.
  std::vector<std::string> message_headers;
  std::string codec_template;  // `&codec_template<Message>` is a `const ::verbena::Codec*`.
  std::string codec_header;    // The header that declares it.
  std::vector<ServiceModel> services;
};

}  // namespace verbena::codegen
