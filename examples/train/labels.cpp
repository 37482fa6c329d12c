#include "labels.hpp"

#include "values.hpp"

#include <penstock/io/enumeration.hpp>
#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

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

/// The members of the labels' enumeration, the same in all files; none for other numbers, and for h5py's booleans,
/// which are an enumeration of FALSE and TRUE in the file alone.
std::vector<io::enum_member> members_of(const label_source& from, const io::row_reader& reader) {
  if (reader.element().numpy == "|b1") return {};
  const auto first = io::enumeration_of(from.labels.front());
  for (const io::location& part : from.labels) {
    if (first.empty() || &part == &from.labels.front()) continue;
    const auto other = io::enumeration_of(part);
    const bool same = std::equal(first.begin(), first.end(), other.begin(), other.end(),
                                 [](const auto& a, const auto& b) { return a.value == b.value && a.name == b.name; });
    if (!same)
      throw io::error(fmt::format("its enumeration has other members than that of {}, and they are the classes",
                                  from.labels.front().file.string()),
                      {.file = part.file.string(), .dataset = part.dataset});
  }
  return first;
}

void require_one_value(const io::row_reader& reader, label_kind kind) {
  const std::size_t bytes =
      kind == label_kind::texts ? reader.element().per_value : penstock::size_of(reader.element().element);
  if (reader.row_bytes() == bytes) return;
  const io::location& first = reader.segments().front().where;
  throw io::error(
      "a label is one number or text for each row; where a row holds a value for each class (one-hot, or "
      "probabilities), say --one-hot, and where it holds values to learn, --loss mse or huber",
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

/// The place of a value among the members; their number where it is none of them.
std::size_t place_among(const std::vector<std::int64_t>& values, double label) {
  const auto there = std::lower_bound(values.begin(), values.end(), label,
                                      [](std::int64_t value, double l) { return static_cast<double>(value) < l; });
  const bool found = there != values.end() && static_cast<double>(*there) == label;
  return static_cast<std::size_t>((found ? there : values.end()) - values.begin());
}

void scan_members(io::row_reader& reader, const label_source& from, const row_weights& weights, label_summary& to) {
  to.counts.resize(to.values.size());
  for_each_piece(reader, from.damaged_rows, [&](std::uint64_t first, std::uint64_t rows, const std::byte* bytes) {
    for (std::size_t n = 0; n < rows; ++n) {
      if (!weights.counts(first + n)) continue;
      const double label = value_at(reader.element(), bytes, n);
      const std::size_t c = place_among(to.values, label);
      if (c == to.values.size())
        refuse(reader, first + n,
               fmt::format("the label is {}, which none of the {} members of its enumeration is", label, c));
      to.counts[c] += counted(from, first + n);
    }
  });
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
                 fmt::format("the label is {}; labels are whole numbers from {} to {}{}", label, from.first, last,
                             std::isfinite(label) && label != std::floor(label)
                                 ? "; values to learn take --loss mse or huber"
                                 : ""));
        const std::size_t c = static_cast<std::size_t>(label) - static_cast<std::size_t>(from.first);
        if (c >= to.counts.size()) {
          to.counts.resize(c + 1);
          to.row_of_largest = first + n;
        }
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

/// Numbers that have names stand for the same class in both sets.
void check_members(const label_summary& labels, const label_summary& training, const io::location& first) {
  for (std::size_t c = 0; c < std::min(labels.names.size(), training.names.size()); ++c)
    if (labels.names[c] != training.names[c])
      throw std::invalid_argument(
          fmt::format("{}:{}: class {} is '{}' in its enumeration, and '{}' in that of the "
                      "training set",
                      first.file.string(), first.dataset, c, labels.names[c], training.names[c]));
}

void check_names(const label_summary& labels, const label_summary& training, const io::location& first) {
  const bool numbers = labels.kind == label_kind::numbers;
  if (numbers != (training.kind == label_kind::numbers))
    throw std::invalid_argument(
        fmt::format("{}:{}: its labels are {}, and those of the training set {}; name classes "
                    "in the same way in both",
                    first.file.string(), first.dataset, numbers ? "numbers" : "texts", numbers ? "texts" : "numbers"));
  if (numbers) return check_members(labels, training, first);
  for (const std::string& name : labels.names)
    if (std::find(training.names.begin(), training.names.end(), name) == training.names.end())
      throw std::invalid_argument(fmt::format("{}:{}: '{}' is none of the {} classes of the training set",
                                              first.file.string(), first.dataset, name, training.names.size()));
}

/// Where names are in their list.
class places {
 public:
  explicit places(const std::vector<std::string>& names) {
    for (const std::string& name : names) there_.emplace(name, static_cast<std::int32_t>(there_.size()));
  }
  /// Any place where the text is not there, as those of masked rows may.
  std::int32_t of(std::string_view text) const {
    const auto found = there_.find(text);
    return found != there_.end() ? found->second : 0;
  }

 private:
  std::map<std::string, std::int32_t, std::less<>> there_;
};

}  // namespace

label_summary scan_labels(const label_source& from) {
  io::row_reader reader(from.labels);
  const row_weights weights(from);
  label_summary found{.kind = kind_of(reader)};
  found.mask_bytes = (weights.rows() + 7) / 8 + (from.counted.size() + 7) / 8;
  require_one_value(reader, found.kind);
  if (found.kind == label_kind::numbers) {
    for (io::enum_member& member : members_of(from, reader)) {
      if (member.value != from.first + static_cast<std::int64_t>(found.names.size())) found.kind = label_kind::members;
      found.values.push_back(member.value);
      found.names.push_back(std::move(member.name));
    }
  }
  if (found.kind == label_kind::members) {
    scan_members(reader, from, weights, found);
  } else if (found.kind == label_kind::numbers) {
    scan_numbers(reader, from, weights, found);
    if (!found.names.empty() && found.counts.size() > found.names.size())
      throw io::error(fmt::format("there is a label {}, which none of the {} members of its enumeration is",
                                  from.first + static_cast<std::int64_t>(found.counts.size()) - 1, found.names.size()),
                      {.file = from.labels.front().file.string(), .dataset = from.labels.front().dataset});
    if (!found.names.empty()) found.counts.resize(found.names.size());
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
  const places among(names);
  if (labels.kind == label_kind::codes) {
    std::vector<std::int32_t> places;
    for (const std::string& name : labels.stored) places.push_back(among.of(name));
    return pipeline::transform_host(options, [places](const pipeline::block& block) {
      const auto* const from = block.input<std::int32_t>("label");
      auto* const to = block.output<std::int32_t>("label");
      for (std::size_t n = 0; n < block.rows(); ++n) to[n] = places[static_cast<std::size_t>(from[n])];
    });
  }
  const auto label_of = [](const pipeline::block& block) {
    return std::find_if(block.inputs().begin(), block.inputs().end(),
                        [](const pipeline::block_field& each) { return each.name == "label"; });
  };
  if (labels.kind == label_kind::members) {
    std::vector<std::int32_t> classes;  // the last is for what is no member, as in masked rows
    for (const std::string& name : labels.names) classes.push_back(among.of(name));
    classes.push_back(0);
    return pipeline::transform_host(options, [classes, label_of, values = labels.values](const pipeline::block& block) {
      const auto field = label_of(block);
      auto* const to = block.output<std::int32_t>("label");
      for (std::size_t n = 0; n < block.rows(); ++n)
        to[n] = classes[place_among(values, value_at({.element = field->element}, field->data, n))];
    });
  }
  return pipeline::transform_host(options, [among, label_of](const pipeline::block& block) {
    const auto field = label_of(block);
    auto* const to = block.output<std::int32_t>("label");
    for (std::size_t n = 0; n < block.rows(); ++n) to[n] = among.of(text_at(field->data, n, field->row_bytes));
  });
}

}  // namespace examples
