#include <penstock/io/error.hpp>

#include <fmt/format.h>

namespace penstock::io {
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
    : penstock::error(sentence_with_place(sentence, context)), context_(std::move(context)) {}

}  // namespace penstock::io
