#include "confusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace examples {
namespace {

constexpr std::size_t most_columns = 20;  // that a screen shows

/// Names may be any text, and a table has a line for each.
std::vector<std::string> on_one_line(std::vector<std::string> names) {
  for (std::string& name : names)
    for (char& c : name)
      if ((c >= 0 && c < ' ') || c == 0x7f) c = ' ';
  return names;
}

std::uint64_t rows_of(const penstock::train::confusion_matrix& counts, std::size_t label) {
  std::uint64_t rows = 0;
  for (std::size_t predicted = 0; predicted < counts.classes; ++predicted) rows += counts.of(label, predicted);
  return rows;
}

}  // namespace

std::vector<std::string> names_of_classes(const penstock::train::trainer_options& trainer) {
  const auto& stage = trainer.stage;
  const std::size_t classes = penstock::train::classes_of(stage.loss, stage.model.outputs);
  const std::size_t first = stage.targets == penstock::train::target::label_from_one ? 1 : 0;
  std::vector<std::string> names = trainer.class_names;  // there may be more classes than texts to name them
  for (std::size_t c = names.size(); c < classes; ++c) names.push_back(std::to_string(first + c));
  return names;
}

std::string to_text(const penstock::train::confusion_matrix& counts, const std::vector<std::string>& stored) {
  const std::vector<std::string> names = on_one_line(stored);
  std::size_t width = 5;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}", "class", width, "rows", "precision", "recall");
  const bool all = counts.classes <= most_columns;
  if (all) text += "  predicted as";
  for (std::size_t c = 0; all && c < counts.classes; ++c) text += fmt::format(" {:>7}", names[c]);
  text += '\n';
  for (std::size_t c = 0; c < counts.classes; ++c) {
    text += fmt::format("{:<{}}  {:>9}  {:>9.4f}  {:>9.4f}", names[c], width, rows_of(counts, c), counts.precision(c),
                        counts.recall(c));
    if (all) text += fmt::format("{:14}", "");
    for (std::size_t predicted = 0; all && predicted < counts.classes; ++predicted)
      text += fmt::format(" {:>{}}", counts.of(c, predicted), std::max<std::size_t>(7, names[predicted].size()));
    text += '\n';
  }
  return text;
}

nlohmann::json to_json(const penstock::train::confusion_matrix& counts, const std::vector<std::string>& names) {
  nlohmann::json result;
  result["classes"] = names;
  for (std::size_t c = 0; c < counts.classes; ++c) {
    const auto first = counts.counts.begin() + static_cast<std::ptrdiff_t>(c * counts.classes);
    result["counts"].push_back(std::vector<std::uint64_t>(first, first + static_cast<std::ptrdiff_t>(counts.classes)));
    result["precision"].push_back(counts.precision(c));
    result["recall"].push_back(counts.recall(c));
  }
  return result;
}

}  // namespace examples
