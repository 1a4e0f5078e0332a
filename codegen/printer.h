// SPDX-License-Identifier: Apache-2.0
//
// Writes source text: named variables, indentation, and line breaks as Google style has them.
// Used by one thread; holds its text until it is taken.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbena::codegen {

class Printer {
 public:
  using Variables = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  static constexpr size_t kColumns = 100;

  // Appends `text` with each `$name$` replaced, and every line that is not empty indented.
  // REQUIRES: `text` consists of whole lines, and each `$name$` in it is in `variables`; aborts
  // otherwise, as that is a mistake in the emitter.
  void Print(std::string_view text, Variables variables = {});

  // Appends `head` + the comma-separated `arguments` + `tail`, broken after the commas where one
  // line would be too long. `head` ends with the opening parenthesis or brace.
  void PrintList(std::string_view head, const std::vector<std::string>& arguments,
                 std::string_view tail);

  // Appends the function `head` { `statement` }, in one line where it fits.
  void PrintFunction(std::string_view head, std::string_view statement);

  // Appends `comment` as "//" lines, whatever bytes it consists of: no code comes out of it, and
  // what is shown of it is what is there. Does nothing if it is empty.
  void PrintComment(std::string_view comment);

  // Two columns each.
  void Indent() { indent_ += 2; }
  void Outdent() { indent_ -= 2; }

  const std::string& text() const { return text_; }

 private:
  void PrintLine(std::string_view line);

  std::string text_;
  size_t indent_ = 0;
};

// `text` with each `$name$` replaced; REQUIRES as Print does.
std::string Substitute(std::string_view text, Printer::Variables variables);

}  // namespace verbena::codegen
