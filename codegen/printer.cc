// SPDX-License-Identifier: Apache-2.0

#include "verbena/codegen/printer.h"

#include <cstdio>
#include <cstdlib>

namespace verbena::codegen {
namespace {

// A mistake in a template, found by the first test that runs it.
[[noreturn]] void Die(const char* what, std::string_view where) {
  std::fprintf(stderr, "the emitter: %s: \"%.*s\"\n", what, static_cast<int>(where.size()),
               where.data());
  std::abort();
}

std::string_view Lookup(std::string_view name, Printer::Variables variables) {
  for (const auto& [key, value] : variables) {
    if (key == name) return value;
  }
  Die("no value for the template variable", name);
}

// Greedy: as many arguments per line as fit. The first line starts at `first_column`, the others
// at `column`. Empty when an argument does not fit on a line of its own.
std::vector<std::string> Pack(const std::vector<std::string>& arguments, size_t first_column,
                              size_t column, size_t tail_size) {
  std::vector<std::string> lines = {""};
  size_t start = first_column;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool last = i + 1 == arguments.size();
    const size_t size = arguments[i].size() + (last ? tail_size : 1);  // 1: the comma.
    const size_t used = lines.back().empty() ? 0 : lines.back().size() + 1;
    if (start + used + size > Printer::kColumns) {
      if (lines.back().empty() || column + size > Printer::kColumns) return {};
      lines.emplace_back();
      start = column;
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += arguments[i];
    if (!last) lines.back() += ',';
  }
  return lines;
}

// Whether a compiler, an editor or a reviewer's tool may take `c` for the end of a line.
bool EndsLine(char32_t c) {
  return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Control characters, and those that change the direction in which a line is shown, so that it
// reads as what it isn't (https://trojansource.codes; g++'s -Wbidi-chars).
bool IsInvisible(char32_t c) {
  return (c < ' ' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e ||
         c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

// The character that `text` begins with in UTF-8, and in `size` its bytes; what isn't UTF-8 is
// U+FFFD and one byte. REQUIRES: `text` is not empty.
char32_t FirstCharacter(std::string_view text, size_t& size) {
  const auto first = static_cast<unsigned char>(text[0]);
  size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 1) return first;
  constexpr char32_t kSmallest[] = {0x80, 0x800, 0x10000};  // Of two, three and four bytes.
  char32_t c = first & (0x7fU >> size);
  bool valid = first >= 0xc2 && first < 0xf5 && text.size() >= size;
  for (size_t i = 1; valid && i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    valid = (next & 0xc0U) == 0x80;
    c = c << 6U | (next & 0x3fU);
  }
  valid = valid && c >= kSmallest[size - 2] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
  if (valid) return c;
  size = 1;
  return 0xfffd;
}

// `text` with '\n' as the only end of a line, and without what would not be seen in it.
std::string CleanComment(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    size_t size = 1;
    const char32_t c = FirstCharacter(text, size);
    if (text.starts_with("\r\n")) size = 2;
    if (EndsLine(c)) {
      result += '\n';
    } else if (c == 0xfffd) {
      result += '?';
    } else if (!IsInvisible(c)) {
      result += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return result;
}

// `line` without the backslash or its trigraph at the end, also before spaces, which would make the
// next line a comment, too.
std::string_view WithoutSplice(std::string_view line) {
  while (true) {
    line = line.substr(0, line.find_last_not_of(" \t\\") + 1);
    if (!line.ends_with("?\?/")) return line;
    line.remove_suffix(3);
  }
}

}  // namespace

std::string Substitute(std::string_view text, Printer::Variables variables) {
  std::string result;
  while (true) {
    const size_t open = text.find('$');
    result += text.substr(0, open);
    if (open == std::string_view::npos) return result;
    const size_t close = text.find('$', open + 1);
    if (close == std::string_view::npos) Die("'$' without a second one", text);
    result += Lookup(text.substr(open + 1, close - open - 1), variables);
    text.remove_prefix(close + 1);
  }
}

void Printer::PrintLine(std::string_view line) {
  if (!line.empty()) text_.append(indent_, ' ').append(line);
  text_ += '\n';
}

void Printer::Print(std::string_view text, Variables variables) {
  const std::string result = Substitute(text, variables);
  if (!result.empty() && result.back() != '\n') Die("text without a newline at its end", result);
  for (std::string_view rest = result; !rest.empty();) {
    const size_t end = rest.find('\n');
    PrintLine(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

void Printer::PrintList(std::string_view head, const std::vector<std::string>& arguments,
                        std::string_view tail) {
  const size_t open = indent_ + head.size();
  // One line; else aligned with the first argument; else all below, four columns in.
  std::vector<std::string> lines = Pack(arguments, open, open, tail.size());
  size_t column = open;
  std::string first(head);
  if (lines.empty()) {
    column = indent_ + 4;
    lines = Pack(arguments, column, column, tail.size());
    if (lines.empty()) {  // A name longer than a line: one argument per line.
      for (size_t i = 0; i < arguments.size(); ++i) {
        lines.push_back(arguments[i] + (i + 1 == arguments.size() ? "" : ","));
      }
    }
  } else {
    first += lines.front();
    lines.erase(lines.begin());
  }
  if (lines.empty()) first += tail;
  PrintLine(first);
  for (size_t i = 0; i < lines.size(); ++i) {
    text_.append(column, ' ').append(lines[i]);
    if (i + 1 == lines.size()) text_ += tail;
    text_ += '\n';
  }
}

void Printer::PrintFunction(std::string_view head, std::string_view statement) {
  const std::string line = std::string(head).append(" { ").append(statement).append(" }");
  if (indent_ + line.size() <= kColumns) return PrintLine(line);
  PrintLine(std::string(head).append(" {"));
  PrintLine(std::string("  ").append(statement));
  PrintLine("}");
}

void Printer::PrintComment(std::string_view comment) {
  const std::string cleaned = CleanComment(comment);
  std::string_view text = cleaned;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty()) return;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find('\n');
    const std::string_view line = WithoutSplice(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // As it was: " text" of "// text", "/ text" of "/// text".
    const bool spaced = line.empty() || line.front() == ' ' || line.front() == '/';
    PrintLine(std::string(spaced ? "//" : "// ").append(line));
  }
}

}  // namespace verbena::codegen
