#include "labels.hpp"

#include "values.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>

namespace examples {
namespace {

namespace io = penstock::io;

/// Whether a row takes part: one by one, in order.
class row_weights {
 public:
  explicit row_weights(const label_source& from) {
    if (from.weights.empty()) return;
    io::row_reader reader(from.weights);
    counted_.resize(reader.rows());
    for_each_piece(reader, from.damaged_rows, [&](std::uint64_t first, std::uint64_t rows, const std::byte* bytes) {
      for (std::size_t n = 0; n < rows; ++n) counted_[first + n] = value_at(reader.element(), bytes, n) != 0;
    });
  }
  std::size_t rows() const noexcept { return counted_.size(); }
  bool counts(std::uint64_t row) const { return row >= counted_.size() || counted_[row]; }

 private:
  std::vector<bool> counted_;
};

label_kind kind_of(const io::row_reader& reader) {
  if (!reader.class_names().empty()) return label_kind::codes;
  return reader.element().numpy.starts_with("|S") ? label_kind::texts : label_kind::numbers;
}

void require_one_value(const io::row_reader& reader, label_kind kind) {
  const std::size_t bytes =
      kind == label_kind::texts ? reader.element().per_value : penstock::size_of(reader.element().element);
  if (reader.row_bytes() == bytes) return;
  const io::location& first = reader.segments().front().where;
  throw io::error(
      "a label is one number or text for each row; where a row holds a value for each class (one-hot, or "
      "probabilities), say --one-hot",
      {.file = first.file.string(), .dataset = first.dataset});
}

std::string_view text_at(const std::byte* bytes, std::size_t n, std::size_t length) {
  const char* const text = reinterpret_cast<const char*>(bytes) + n * length;
  return {text, static_cast<std::size_t>(std::find(text, text + length, '\0') - text)};
}

[[noreturn]] void refuse(const io::row_reader& reader, std::uint64_t row, const std::string& sentence) {
  const auto& part = reader.segment_of(row);
  throw io::error(sentence,
                  {.file = part.where.file.string(), .dataset = part.where.dataset, .rows = {row - part.first_row, 1}});
}

std::uint64_t counted(const label_source& from, std::uint64_t row) {
  return from.counted.empty() || from.counted[row] ? 1 : 0;
}

void scan_numbers(io::row_reader& reader, const label_source& from, const row_weights& weights, label_summary& to) {
  const double last = from.first + from.most_classes - 1;
  for_each_piece(reader, from.damaged_rows, [&](std::uint64_t first, std::uint64_t rows, const std::byte* bytes) {
    penstock::visit_type(reader.element().element, [&](auto zero) {
      for (std::size_t n = 0; n < rows; ++n) {
        const double label = value_at<decltype(zero)>(bytes, n, reader.element().swapped);
        if (!weights.counts(first + n)) continue;
        if (!(label >= from.first && label == std::floor(label) && label <= last))
          refuse(reader, first + n,
                 fmt::format("the label is {}; labels are whole numbers from {} to {}", label, from.first, last));
        const std::size_t c = static_cast<std::size_t>(label) - static_cast<std::size_t>(from.first);
        if (c >= to.counts.size()) to.counts.resize(c + 1);
        to.counts[c] += counted(from, first + n);
      }
    });
  });
}

/// `text_of(bytes, n)`: the text of row n.
template <class TextOf>
void scan_texts(io::row_reader& reader, const label_source& from, const row_weights& weights, label_summary& to,
                TextOf text_of) {
  std::map<std::string, std::uint64_t, std::less<>> found;
  for_each_piece(reader, from.damaged_rows, [&](std::uint64_t first, std::uint64_t rows, const std::byte* bytes) {
    for (std::size_t n = 0; n < rows; ++n) {
      if (!weights.counts(first + n)) continue;
      const std::string_view text = text_of(bytes, n);
      auto there = found.find(text);
      if (there == found.end()) there = found.emplace(text, 0).first;
      there->second += counted(from, first + n);
      if (static_cast<double>(found.size()) > from.most_classes)
        refuse(reader, first + n,
               fmt::format("there are more than {} different texts; they are no names of classes", from.most_classes));
    }
  });
  for (const auto& [name, rows] : found) {
    to.names.push_back(name);
    to.counts.push_back(rows);
  }
}

void check_names(const label_summary& labels, const label_summary& training, const io::location& first) {
  const bool numbers = labels.kind == label_kind::numbers;
  if (numbers != (training.kind == label_kind::numbers))
    throw std::invalid_argument(
        fmt::format("{}:{}: its labels are {}, and those of the training set {}; name classes "
                    "in the same way in both",
                    first.file.string(), first.dataset, numbers ? "numbers" : "texts", numbers ? "texts" : "numbers"));
  for (const std::string& name : labels.names)
    if (!std::binary_search(training.names.begin(), training.names.end(), name))
      throw std::invalid_argument(fmt::format("{}:{}: '{}' is none of the {} classes of the training set",
                                              first.file.string(), first.dataset, name, training.names.size()));
}

/// Any place where the text is not there, as those of masked rows may.
std::int32_t place_among(const std::vector<std::string>& names, std::string_view text) {
  return static_cast<std::int32_t>(std::lower_bound(names.begin(), names.end(), text) - names.begin());
}

}  // namespace

label_summary scan_labels(const label_source& from) {
  io::row_reader reader(from.labels);
  const row_weights weights(from);
  label_summary found{.kind = kind_of(reader)};
  found.mask_bytes = (weights.rows() + 7) / 8 + (from.counted.size() + 7) / 8;
  require_one_value(reader, found.kind);
  if (found.kind == label_kind::numbers) {
    scan_numbers(reader, from, weights, found);
  } else if (found.kind == label_kind::texts) {
    scan_texts(reader, from, weights, found,
               [&](const std::byte* bytes, std::size_t n) { return text_at(bytes, n, reader.row_bytes()); });
  } else {
    found.stored = reader.class_names();
    label_source all = from;
    all.most_classes = static_cast<double>(found.stored.size());
    scan_texts(reader, all, weights, found, [&](const std::byte* bytes, std::size_t n) -> std::string_view {
      return found.stored.at(static_cast<std::size_t>(value_at<std::int32_t>(bytes, n, false)));
    });
  }
  return found;
}

std::optional<penstock::pipeline::host_transform> numbered(const label_summary& labels, const label_summary& training,
                                                           const io::location& first) {
  namespace pipeline = penstock::pipeline;
  check_names(labels, training, first);
  const std::vector<std::string>& names = training.names;
  if (labels.kind == label_kind::numbers || (labels.kind == label_kind::codes && labels.stored == names)) return {};
  const pipeline::transform_options options{.name = "numbers of classes",
                                            .outputs = {{.name = "label", .element = penstock::type::int32}}};
  if (labels.kind == label_kind::codes) {
    std::vector<std::int32_t> places;
    for (const std::string& name : labels.stored) places.push_back(place_among(names, name));
    return pipeline::transform_host(options, [places](const pipeline::block& block) {
      const auto* const from = block.input<std::int32_t>("label");
      auto* const to = block.output<std::int32_t>("label");
      for (std::size_t n = 0; n < block.rows(); ++n) to[n] = places[static_cast<std::size_t>(from[n])];
    });
  }
  return pipeline::transform_host(options, [names](const pipeline::block& block) {
    const auto field = std::find_if(block.inputs().begin(), block.inputs().end(),
                                    [](const pipeline::block_field& each) { return each.name == "label"; });
    auto* const to = block.output<std::int32_t>("label");
    for (std::size_t n = 0; n < block.rows(); ++n)
      to[n] = place_among(names, text_at(field->data, n, field->row_bytes));
  });
}

}  // namespace examples
