#pragma once

#include <penstock/io/file.hpp>

#include <stdexcept>

namespace examples {

/// What to throw where `option` names no dataset: it lists those of the file. Throws std::runtime_error where one of
/// them cannot be opened.
std::invalid_argument dataset_missing(const penstock::io::file& file, const char* option);

}  // namespace examples
