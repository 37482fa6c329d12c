#pragma once

#include <penstock/io/writer.hpp>

#include <cstdint>
#include <filesystem>

#include "synthetic_rows.hpp"

namespace examples {

/// Writes the first `rows` rows of `task` to `target`: /x (rows x columns) stored as `storage` says, and /label int32.
/// Takes memory for two pieces of a few chunks each, whatever `rows` is: one is made while the other is written.
void write_rows_file(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage,
                     const std::filesystem::path& target);

}  // namespace examples
