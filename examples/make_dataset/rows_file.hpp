#pragma once

#include <penstock/io/writer.hpp>

#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "synthetic_rows.hpp"

namespace examples {

/// Writes the first `rows` rows of `task` to `target`: /x (rows x columns) stored as `storage` says, and /label int32.
/// Takes memory for two pieces of a few chunks each, whatever `rows` is: one is made while the other is written.
/// False where `stop` was requested before all rows were written: there is no new file then.
bool write_rows_file(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage,
                     const std::filesystem::path& target, const std::stop_token& stop);

}  // namespace examples
