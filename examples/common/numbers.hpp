#pragma once

#include <penstock/io/error.hpp>
#include <penstock/io/location.hpp>
#include <penstock/io/row_reader.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace examples {

inline bool holds_texts(const penstock::io::row_reader& reader) {
  return !reader.class_names().empty() || reader.element().numpy.starts_with("|S");
}

/// Refuses texts where numbers are meant: the codes that io gives for them would be taken for values. `why` says who
/// takes numbers. Opens the first of the dataset's files alone, since all of them have its type. Throws io::error.
inline void require_numbers(const std::vector<penstock::io::location>& dataset, const std::string& why) {
  if (dataset.empty() || !holds_texts(penstock::io::row_reader(std::vector{dataset.front()}))) return;
  throw penstock::io::error("it holds texts, and " + why,
                            {.file = dataset.front().file.string(), .dataset = dataset.front().dataset});
}

/// How many numbers a row of a dataset holds. Opens the first of the dataset's files alone, as above.
inline std::size_t values_of_a_row(const std::vector<penstock::io::location>& dataset) {
  const penstock::io::row_reader reader(std::vector{dataset.front()});
  return reader.row_bytes() / penstock::size_of(reader.element().element);
}

}  // namespace examples
