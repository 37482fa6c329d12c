#pragma once

#include <penstock/io/row_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// A number for what tells a row's group: texts as such, however long the dataset stores them and whichever others
/// there are; other values as they are stored, but that equal floats have the same.
class group_key {
 public:
  /// The reader gives values as they are stored.
  explicit group_key(const io::row_reader& reader);

  std::uint64_t operator()(const std::byte* row);

 private:
  std::uint64_t key_of_texts();
  std::uint64_t text_key(std::size_t number) const;

  io::element_type element_;
  std::vector<std::byte> bytes_;
  std::size_t text_bytes_ = 0;            ///< of a text of fixed length, with its padding
  std::vector<std::uint64_t> name_keys_;  ///< of texts of variable length, by code
};

}  // namespace penstock::pipeline
