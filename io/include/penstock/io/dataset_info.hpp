#pragma once

#include <penstock/type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::io {

/// Elements as they are stored.
struct element_type {
  type element = type::uint8;
  bool swapped = false;         ///< stored in the other byte order than this machine's
  std::uint64_t per_value = 1;  ///< elements per dataset value: the length of a fixed string, or of an array type
  std::string numpy;            ///< numpy's code in native byte order: "<f4", "|S5", "|b1"
};

enum class layout : std::uint8_t { compact, contiguous, chunked, virtual_dataset };

/// How rows are read.
enum class access : std::uint8_t {
  direct,  ///< positioned reads, decoded on our threads, outside libhdf5
  staged,  ///< read once through libhdf5, then from memory
  locked   ///< libhdf5 reads each piece, under one mutex
};

struct filter {
  int id = 0;
  std::string name;
  std::vector<unsigned> values;  ///< cd_values
};

/// One dataset, described.
struct dataset_info {
  std::string path;
  std::vector<std::uint64_t> shape;
  std::optional<element_type>
      element;  ///< absent where the type is no plain array of numbers; `type_text` says what it is
  /// For people: "float32", "string of 5 bytes", "compound {a: int32, b: float64}"; "unreadable" where nothing but the
  /// path is known.
  std::string type_text;
  io::layout layout = io::layout::contiguous;
  std::vector<std::uint64_t> chunk_shape;  ///< empty unless chunked
  std::vector<filter> filters;
  std::uint64_t stored_bytes = 0;
  io::access access = io::access::locked;
  std::string reason;                        ///< why this access, one clause
  std::vector<std::string> missing_sources;  ///< of a virtual dataset: FILE:DATASET of sources that are not there
  std::string unreadable;                    ///< why its values cannot be read and what helps; empty where they can
};

std::string_view name_of(layout) noexcept;
std::string_view name_of(access) noexcept;

}  // namespace penstock::io
