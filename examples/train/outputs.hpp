#pragma once

#include "options.hpp"

#include <filesystem>
#include <vector>

namespace examples {

/// Refuses files of results that could not be written, that are one of `inputs`, or the same as another, before any
/// work is done.
void check_outputs(const train_options& o, const std::vector<std::filesystem::path>& inputs);

}  // namespace examples
