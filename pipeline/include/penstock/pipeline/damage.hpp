#pragma once

#include <penstock/type.hpp>

#include <cstdint>
#include <string>

namespace penstock::pipeline {

/// What becomes of rows whose stored bytes cannot be read or decoded: a checksum that does not fit, a stream that does
/// not decode, a file that ends, a disk that gives EIO. Damage that nothing in the file tells is not found.
enum class damage_policy : std::uint8_t {
  stop,  ///< ends the epoch with an error that names file, dataset and rows
  skip   ///< leaves the rows out, up to a limit, and lists them in the report
};

/// With `skip`, each batch has one more field: 1 for a row as it is stored, 0 for one that was left out, and for
/// padding. A row that was left out keeps its place in the batch; its damaged fields are zeros (before scale and
/// shift). train takes the field as the rows' weights by itself; others' code must look at it.
struct damage_options {
  damage_policy policy = damage_policy::stop;
  std::uint64_t limit_rows = 1000;  ///< of the source, in all epochs; one more is an error as with `stop`
  std::string mask = "intact";      ///< the name of the field
  type as = type::float32;          ///< its type: float32, float64 or uint8
};

/// Rows of the source that were left out.
struct damaged_rows {
  std::string field{};
  std::uint64_t first = 0;  ///< in the source
  std::uint64_t count = 0;
  std::string file{};
  std::string dataset{};
  std::uint64_t first_stored = 0;  ///< the first of them in that dataset
  std::string why{};               ///< the error's sentence
};

}  // namespace penstock::pipeline
