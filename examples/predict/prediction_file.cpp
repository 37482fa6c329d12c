#include "prediction_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace examples {

namespace ps = penstock;

namespace {
constexpr std::int32_t no_class = -1;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

/// The rows, counted from `first_row`, in which a value is none.
template <class T, class IsNone>
std::vector<rows_in_a_row> rows_with(std::uint64_t first_row, std::size_t count, const T* values, std::size_t columns,
                                     IsNone is_none) {
  std::vector<rows_in_a_row> found;
  for (std::size_t row = 0; row < count; ++row)
    if (std::any_of(values + row * columns, values + (row + 1) * columns, is_none)) add({first_row + row, 1}, found);
  return found;
}
}  // namespace

prediction_file::prediction_file(const std::string& file, std::string dataset, std::uint64_t rows, std::size_t columns,
                                 ps::type element, bool classes, const ps::train::class_labels& labels,
                                 ps::fault_seam faults)
    : writer_(file, std::move(faults)),
      dataset_(std::move(dataset)),
      columns_(columns),
      element_(element),
      classes_(classes),
      decision_(labels.decision),
      class_columns_(decision_ == ps::train::decision::yes_or_no ? columns : 1),
      first_class_(labels.first) {
  if (classes && class_columns_ == 1)
    writer_.create(dataset_, ps::type::int32, {rows});
  else
    writer_.create(dataset_, classes ? ps::type::int32 : element, {rows, classes ? class_columns_ : columns});
  if (!labels.names.empty()) writer_.attribute(dataset_, "class_names", nlohmann::json(labels.names).dump());
}

std::vector<rows_in_a_row> prediction_file::write(std::uint64_t first_row, std::size_t count,
                                                  std::span<const std::byte> values) {
  const auto write = [&](const auto* of_rows) {
    if (!classes_) {
      writer_.write_rows(dataset_, first_row, count, values);
      return rows_with(first_row, count, of_rows, columns_, [](auto value) { return !std::isfinite(value); });
    }
    choose(count, of_rows);
    writer_.write_rows(dataset_, first_row, count, std::as_bytes(std::span(chosen_)));
    return rows_with(first_row, count, chosen_.data(), class_columns_, [](auto chosen) { return chosen == no_class; });
  };
  if (element_ == ps::type::float64) return write(reinterpret_cast<const double*>(values.data()));
  return write(reinterpret_cast<const float*>(values.data()));
}

template <class T>
bool prediction_file::fill(T none, const rows_in_a_row& rows, std::size_t columns, const std::stop_token& stop) {
  const std::size_t most = std::max<std::size_t>(1, piece_bytes / (columns * sizeof(T)));
  const std::vector<T> piece(std::min<std::uint64_t>(most, rows.count) * columns, none);
  for (std::uint64_t done = 0; done < rows.count; done += most) {
    if (stop.stop_requested()) return false;
    const std::size_t count = std::min<std::uint64_t>(most, rows.count - done);
    writer_.write_rows(dataset_, rows.first + done, count, std::as_bytes(std::span(piece).first(count * columns)));
  }
  return true;
}

bool prediction_file::write_none(const rows_in_a_row& rows, const std::stop_token& stop) {
  if (classes_) return fill(no_class, rows, class_columns_, stop);
  if (element_ == ps::type::float64) return fill(std::numeric_limits<double>::quiet_NaN(), rows, columns_, stop);
  return fill(std::numeric_limits<float>::quiet_NaN(), rows, columns_, stop);
}

void prediction_file::commit(const std::string& origin, std::uint64_t damaged_rows, std::uint64_t rows_not_finite,
                             std::uint64_t outputs_not_finite) {
  writer_.attribute("/", "penstock_predictions", origin);
  for (const auto& [name, count] : {std::pair{"damaged_rows", damaged_rows},
                                    {"rows_not_finite", rows_not_finite},
                                    {"outputs_not_finite", outputs_not_finite}})
    if (count > 0) writer_.attribute(dataset_, name, std::to_string(count));
  writer_.commit_sealed();
}

template <class T>
void prediction_file::choose(std::size_t count, const T* values) {
  const auto is_none = [](T value) { return std::isnan(value); };  // of a row that went beyond the type's range
  chosen_.resize(count * class_columns_);
  if (decision_ == ps::train::decision::yes_or_no) {
    for (std::size_t n = 0; n < chosen_.size(); ++n)
      chosen_[n] = is_none(values[n]) ? no_class : first_class_ + (values[n] > T(0) ? 1 : 0);
    return;
  }
  for (std::size_t row = 0; row < count; ++row) {
    const T *const first = values + row * columns_, *const last = first + columns_;
    const T* const largest = std::max_element(first, last);
    // Beside an infinite one, a softmax has no probabilities.
    chosen_[row] = std::any_of(first, last, is_none) || std::isinf(*largest)
                       ? no_class
                       : first_class_ + static_cast<std::int32_t>(largest - first);
  }
}

}  // namespace examples
