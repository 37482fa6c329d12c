#include "printable.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace penstock::io {

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
  return text;
}

namespace {

std::string place(const error_context& context) {
  std::string text = context.file;
  if (!context.dataset.empty()) text += (text.empty() ? "" : ":") + context.dataset;
  if (context.rows.count == 1) text += fmt::format(" row {}", context.rows.first);
  if (context.rows.count > 1)
    text += fmt::format(" rows {} to {}", context.rows.first, context.rows.first + (context.rows.count - 1));
  return text;
}

std::string sentence_with_place(const std::string& sentence, const error_context& context) {
  const std::string where = place(context);
  return where.empty() ? sentence : where + ": " + sentence;
}

}  // namespace

error::error(const std::string& sentence, error_context context)
    : penstock::error(printable(sentence_with_place(sentence, context))), context_(std::move(context)) {}

}  // namespace penstock::io
