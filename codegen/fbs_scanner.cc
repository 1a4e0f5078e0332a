// SPDX-License-Identifier: Apache-2.0
//
// The grammar is FlatBuffers' (docs/source/Grammar.md), reduced to what has a name: the rest is
// skipped token by token, brackets and all.

#include "verbena/codegen/fbs_scanner.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace verbena::codegen {
namespace {

struct Token {
  enum class Kind { kEnd, kName, kString, kOther };

  Kind kind = Kind::kEnd;
  std::string_view text;  // Of a string: without its quotes, escapes as they are.
  FbsLocation location;

  bool Is(std::string_view other) const { return kind != Kind::kString && text == other; }
};

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // UTF-8's byte order mark.
  }

  Token Next() {
    SkipBlank();
    Token token{.kind = Token::Kind::kOther, .text = {}, .location = {line_, column_}};
    if (at_ >= text_.size()) {
      token.kind = Token::Kind::kEnd;
      return token;
    }
    const size_t start = at_;
    if (text_[at_] == '"' || text_[at_] == '\'') {
      const char quote = text_[at_];
      Advance(1);
      while (at_ < text_.size() && text_[at_] != quote) Advance(text_[at_] == '\\' ? 2 : 1);
      token.kind = Token::Kind::kString;
      token.text = text_.substr(start + 1, at_ - start - 1);
      Advance(1);
      return token;
    }
    Advance(1);
    if (IsNameStart(text_[start])) {
      while (at_ < text_.size() && IsNamePart(text_[at_])) Advance(1);
      token.kind = Token::Kind::kName;
    }
    token.text = text_.substr(start, at_ - start);
    return token;
  }

 private:
  void Advance(size_t count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) {
      ++column_;
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  }

  void SkipBlank() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
        Advance(1);
      } else if (rest.starts_with("//")) {
        Advance(std::min(rest.find('\n'), rest.size()));
      } else if (rest.starts_with("/*")) {
        const size_t end = rest.find("*/", 2);
        Advance(end == std::string_view::npos ? rest.size() : end + 2);
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : lexer_(text) { Step(); }

  FbsText Scan() {
    while (token_.kind != Token::Kind::kEnd) ScanStatement();
    return std::move(result_);
  }

 private:
  void Step() { token_ = lexer_.Next(); }

  Token Take() {
    const Token token = token_;
    Step();
    return token;
  }

  void ScanStatement() {
    const Token keyword = Take();
    if (keyword.Is("include") || keyword.Is("native_include")) {
      if (keyword.Is("include") && token_.kind == Token::Kind::kString) {
        result_.includes.emplace_back(token_.text);
      }
      SkipStatement();
    } else if (keyword.Is("namespace")) {
      ScanNamespace(keyword.location);
    } else if (keyword.Is("{")) {
      SkipBlock("{", "}");  // An object, as in data.
    } else if (keyword.Is("table") || keyword.Is("struct") || keyword.Is("enum") ||
               keyword.Is("union") || keyword.Is("rpc_service")) {
      ScanDeclaration();
    } else if (keyword.Is("file_identifier")) {
      result_.file_identifier = keyword.location;
      SkipStatement();
    } else if (keyword.Is("file_extension")) {
      result_.file_extension = keyword.location;
      SkipStatement();
    } else if (!keyword.Is(";")) {
      SkipStatement();
    }
  }

  void SkipStatement() {
    while (token_.kind != Token::Kind::kEnd && !Take().Is(";")) {
    }
  }

  // What is open stands behind.
  void SkipBlock(std::string_view open, std::string_view close) {
    for (int depth = 1; depth > 0 && token_.kind != Token::Kind::kEnd;) {
      const Token token = Take();
      if (token.Is(open)) ++depth;
      if (token.Is(close)) --depth;
    }
  }

  void ScanNamespace(FbsLocation location) {
    FbsNamespace found{.components = {}, .location = location};
    while (token_.kind != Token::Kind::kEnd && !token_.Is(";")) {
      const Token token = Take();
      if (token.kind == Token::Kind::kName) found.components.emplace_back(token.text);
    }
    prefix_.clear();
    for (const std::string& component : found.components) prefix_ += component + '.';
    result_.namespaces.push_back(std::move(found));
  }

  void ScanDeclaration() {
    if (token_.kind != Token::Kind::kName) return SkipStatement();
    const std::string name = prefix_ + std::string(token_.text);
    result_.declarations.emplace(name, token_.location);
    while (token_.kind != Token::Kind::kEnd && !token_.Is("{")) {
      if (Take().Is("(")) SkipBlock("(", ")");  // Attributes.
    }
    Step();
    // A member is a name behind the brace, a ';' or a ','. Attributes have commas of their own.
    bool at_start = true;
    while (token_.kind != Token::Kind::kEnd && !token_.Is("}")) {
      const Token token = Take();
      if (at_start && token.kind == Token::Kind::kName) {
        result_.declarations.emplace(name + '.' + std::string(token.text), token.location);
      }
      at_start = token.Is(";") || token.Is(",");
      if (token.Is("(")) SkipBlock("(", ")");
      if (token.Is("[")) SkipBlock("[", "]");
    }
    Step();
  }

  Lexer lexer_;
  Token token_;
  std::string prefix_;  // "a.b." in namespace a.b.
  FbsText result_;
};

}  // namespace

FbsText ScanFbs(std::string_view text) { return Scanner(text).Scan(); }

}  // namespace verbena::codegen
