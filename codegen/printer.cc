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

void Printer::PrintComment(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty()) return;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // A backslash at the end of a "//" line would make the next line a comment, too.
    line = line.substr(0, line.find_last_not_of(" \t\r\v\f\\") + 1);
    // As it was: " text" of "// text", "/ text" of "/// text".
    const bool spaced = line.empty() || line.front() == ' ' || line.front() == '/';
    PrintLine(std::string(spaced ? "//" : "// ").append(line));
  }
}

}  // namespace verbena::codegen
