#pragma once

#include "identifier.hpp"

#include <penstock/io/writer.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::io {

/// A dataset of a file that is being written.
struct written_dataset {
  dataset_id id;
  type element;
  std::vector<std::uint64_t> shape;
  std::size_t row_bytes;
  std::vector<std::uint64_t> chunk;  ///< empty: contiguous
};

/// Creates it, and the groups above it. Throws failure, and std::invalid_argument for options that contradict
/// themselves or the shape.
written_dataset create_dataset(hid_t file, std::string_view name, type element, const std::vector<std::uint64_t>& shape,
                               const create_options& options);

/// Writes rows that it has, one after another in `bytes`. Throws failure.
void write_rows(const written_dataset& to, std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes);

/// Writes the chunk of whole rows that begins at `first` as it is stored. Throws failure.
void write_chunk(const written_dataset& to, std::uint64_t first, std::uint32_t skipped_filters,
                 std::span<const std::byte> encoded);

}  // namespace penstock::io
