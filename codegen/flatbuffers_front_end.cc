// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/flatbuffers_front_end.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/reflection_generated.h"
#include "verbena/codegen/fbs_scanner.h"
#include "verbena/codegen/flatbuffers_check.h"
#include "verbena/codegen/flatbuffers_format.h"
#include "verbena/codegen/flatbuffers_names.h"
#include "verbena/codegen/service_names.h"

namespace verbena::codegen {
namespace {

absl::StatusOr<const reflection::Schema*> ReadSchema(const std::string& bfbs,
                                                     const std::string& name) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bfbs.data()), bfbs.size());
  if (!reflection::VerifySchemaBuffer(verifier)) {
    return absl::InternalError(
        absl::StrCat(name,
                     ": what flatc wrote is no binary schema; is it flatc 2.0.8, or one that knows "
                     "--schema and --bfbs-filenames?"));
  }
  return reflection::GetSchema(bfbs.data());
}

std::string CommentOf(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* lines) {
  std::string text;
  if (lines == nullptr) return text;
  for (const flatbuffers::String* line : *lines) absl::StrAppend(&text, line->str(), "\n");
  return text;
}

bool IsIn(const reflection::Service& service, const std::string& file) {
  return service.declaration_file() != nullptr && service.declaration_file()->str() == file;
}

std::string FileOf(const reflection::Object& type) {
  return type.declaration_file() == nullptr ? "" : type.declaration_file()->str();
}

// INVALID_ARGUMENT, with a remedy, where the attribute has another value, or none.
absl::StatusOr<StreamingKind> StreamingOf(const reflection::RPCCall& call) {
  const reflection::KeyValue* attribute =
      call.attributes() == nullptr ? nullptr : call.attributes()->LookupByKey("streaming");
  if (attribute == nullptr) return StreamingKind::kUnary;
  const std::string value = attribute->value() == nullptr ? "0" : attribute->value()->str();
  if (value == "none") return StreamingKind::kUnary;
  if (value == "client") return StreamingKind::kClientStreaming;
  if (value == "server") return StreamingKind::kServerStreaming;
  if (value == "bidi") return StreamingKind::kBidirectional;
  // "0" is what flatc writes where there is none.
  const std::string problem =
      value == "0" ? "without a value" : absl::StrCat("\"", value, "\", which is not known");
  return absl::InvalidArgumentError(
      absl::StrCat("the attribute streaming is ", problem,
                   "; give \"none\", \"client\", \"server\" or \"bidi\""));
}

class Reader {
 public:
  Reader(const FbsFiles& files, const std::string& main, const FlatbuffersOptions& options,
         const reflection::Schema& schema)
      : files_(files),
        main_(main),
        options_(options),
        schema_(schema),
        file_(files.at(main)),
        text_(ScanFbs(file_.text)) {}

  absl::StatusOr<ServiceFile> Read() {
    if (absl::Status s = CheckFlatcHeaderCompiles(schema_, main_, file_.name, text_); !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckIncludeGuard(files_, main_); !s.ok()) return s;
    ServiceFile model;
    model.generator = "verbena-flatc";
    model.source_path = file_.name;
    model.output_stem = FbsStem(file_.name);
    model.header_path = FbsIncludePath(options_, model.output_stem + ".verbena.h");
    model.codec_header = "verbena/rpc/flatbuffers_codec.h";
    headers_.insert(FbsIncludePath(options_, FlatcHeader(options_, file_.name)));
    if (absl::Status s = ReadServices(model); !s.ok()) return s;
    if (!model.services.empty()) {
      if (absl::Status s = CheckNoNamespaces(model.services.front()); !s.ok()) return s;
      headers_.insert("verbena/rpc/flat_message.h");
    }
    model.message_headers.assign(headers_.begin(), headers_.end());
    const auto taken = [this](const std::string& cpp_namespace) {
      return FlatbuffersNamesIn(schema_, cpp_namespace);
    };
    if (absl::Status s = NameServices(taken, model); !s.ok()) return s;
    return model;
  }

 private:
  absl::Status ReadServices(ServiceFile& model) {
    if (schema_.services() == nullptr) return absl::OkStatus();
    for (const reflection::Service* service : *schema_.services()) {
      if (!IsIn(*service, main_)) continue;
      absl::StatusOr<ServiceModel> read = ReadService(*service);
      if (!read.ok()) return read.status();
      model.services.push_back(*std::move(read));
    }
    // flatc sorts them by name.
    std::stable_sort(model.services.begin(), model.services.end(),
                     [](const ServiceModel& a, const ServiceModel& b) {
                       return std::tie(a.line, a.column) < std::tie(b.line, b.column);
                     });
    return absl::OkStatus();
  }

  absl::StatusOr<ServiceModel> ReadService(const reflection::Service& service) {
    ServiceModel model;
    model.full_name = service.name()->str();
    model.name = LastName(model.full_name);
    model.cpp_namespace = options_.generator.cpp_namespace.empty()
                              ? CppNamespaceOf(NamespaceOf(model.full_name))
                              : options_.generator.cpp_namespace;
    model.comment = CommentOf(service.documentation());
    const FbsLocation location = LocationOf(model.full_name);
    model.line = location.line;
    model.column = location.column;
    if (service.calls() == nullptr) return model;
    for (const reflection::RPCCall* call : *service.calls()) {
      absl::StatusOr<MethodModel> method = ReadMethod(model.full_name, *call);
      if (!method.ok()) return method.status();
      model.methods.push_back(*std::move(method));
    }
    return model;
  }

  absl::StatusOr<MethodModel> ReadMethod(const std::string& service,
                                         const reflection::RPCCall& call) {
    MethodModel model;
    model.name = call.name()->str();
    model.full_name = absl::StrCat(service, "/", model.name);
    const FbsLocation location = LocationOf(absl::StrCat(service, ".", model.name));
    model.line = location.line;
    model.column = location.column;
    model.comment = CommentOf(call.documentation());
    const absl::StatusOr<StreamingKind> streaming = StreamingOf(call);
    if (!streaming.ok()) {
      return absl::InvalidArgumentError(WithPlace(
          file_.name, model.line, model.column,
          absl::StrCat(service, ".", model.name, ": ", std::string(streaming.status().message()))));
    }
    model.streaming = *streaming;
    absl::Status s = ReadType(*call.request(), model.request_type, model.request_codec);
    if (!s.ok()) return s;
    s = ReadType(*call.response(), model.response_type, model.response_codec);
    if (!s.ok()) return s;
    return model;
  }

  // The message that stands for `table` in a method, its codec, and the header that it needs.
  absl::Status ReadType(const reflection::Object& table, std::string& type,
                        std::vector<std::string>& codec) {
    const auto declaring = files_.find(FileOf(table));
    if (declaring == files_.end()) {
      return absl::InternalError(absl::StrCat(file_.name, ": ", table.name()->str(),
                                              " is declared in ", FileOf(table),
                                              ", which is not known"));
    }
    const FbsFile& file = declaring->second;
    const absl::StatusOr<const reflection::Schema*> schema = ReadSchema(file.bfbs, file.name);
    if (!schema.ok()) return schema.status();
    const std::string cpp_type = CppTypeName(table.name()->str());
    type = absl::StrCat("::verbena::FlatMessage<", cpp_type, ">");
    codec = FlatCodec(cpp_type, IdentifierOf(table, **schema), AlignmentOf(table, schema_));
    headers_.insert(FbsIncludePath(options_, FlatcHeader(options_, file.name)));
    return absl::OkStatus();
  }

  // A type in no namespace, of this file or an included one, that is called as a namespace which
  // the code of services uses. INVALID_ARGUMENT, with the place of the type or else of `service`.
  absl::Status CheckNoNamespaces(const ServiceModel& service) const {
    for (const char* const name : {"absl", "google", "verbena", "testing"}) {
      if (name == std::string_view("testing") && !options_.generator.mocks) continue;
      if (schema_.objects()->LookupByKey(name) == nullptr &&
          schema_.enums()->LookupByKey(name) == nullptr) {
        continue;
      }
      FbsLocation at = LocationOf(name);
      if (at.line == 0) at = {.line = service.line, .column = service.column};
      return absl::InvalidArgumentError(
          WithPlace(file_.name, at.line, at.column,
                    absl::StrCat("a type ", name, " in no namespace hides namespace ", name,
                                 ", which the code of services uses; rename the type or give it a "
                                 "namespace")));
    }
    return absl::OkStatus();
  }

  FbsLocation LocationOf(const std::string& declaration) const {
    const auto found = text_.declarations.find(declaration);
    return found == text_.declarations.end() ? FbsLocation() : found->second;
  }

  const FbsFiles& files_;
  const std::string& main_;
  const FlatbuffersOptions& options_;
  const reflection::Schema& schema_;
  const FbsFile& file_;
  const FbsText text_;
  std::set<std::string> headers_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesOfMethodTypes(const std::string& bfbs,
                                                            const std::string& main) {
  const absl::StatusOr<const reflection::Schema*> schema = ReadSchema(bfbs, main);
  if (!schema.ok()) return schema.status();
  std::set<std::string> files;
  if ((*schema)->services() == nullptr) return std::vector<std::string>();
  for (const reflection::Service* service : *(*schema)->services()) {
    if (!IsIn(*service, main) || service->calls() == nullptr) continue;
    for (const reflection::RPCCall* call : *service->calls()) {
      files.insert({FileOf(*call->request()), FileOf(*call->response())});
    }
  }
  files.erase(main);
  return std::vector<std::string>(files.begin(), files.end());
}

absl::StatusOr<ServiceFile> ReadFlatbuffersFile(const FbsFiles& files, const std::string& main,
                                                const FlatbuffersOptions& options) {
  const FbsFile& file = files.at(main);
  const absl::StatusOr<const reflection::Schema*> schema = ReadSchema(file.bfbs, file.name);
  if (!schema.ok()) return schema.status();
  return Reader(files, main, options, **schema).Read();
}

}  // namespace verbena::codegen
