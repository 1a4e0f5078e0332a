// SPDX-License-Identifier: Apache-2.0
//
// Where things stand in the text of a .fbs file: what flatc's binary schema does not say. Meant for
// text that flatc accepts; of any other it finds something or nothing, and never fails. Pure; any
// thread.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::codegen {

// From 1; 0 when it is not known.
struct FbsLocation {
  int line = 0;
  int column = 0;
};

struct FbsNamespace {
  std::vector<std::string> components;  // None for `namespace;`.
  FbsLocation location;                 // Of the keyword.
};

struct FbsText {
  std::vector<std::string> includes;  // As the schema spells them, in its order.
  std::vector<FbsNamespace> namespaces;
  FbsLocation file_identifier;  // Of these keywords.
  FbsLocation file_extension;
  // Of the name of each table, struct, enum, union and service, "a.b.Name", and of each field,
  // value and method, "a.b.Name.field".
  std::map<std::string, FbsLocation> declarations;
};

FbsText ScanFbs(std::string_view text);

}  // namespace verbena::codegen
