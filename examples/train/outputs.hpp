#pragma once

#include "../common/input_files.hpp"
#include "options.hpp"

namespace examples {

/// Refuses files of results that could not be written, that are one of `inputs`, or the same as another, and without
/// --resume a checkpoint, or the log of an epoch, that is there already, before any work is done.
void check_outputs(const train_options& o, const input_files& inputs);

}  // namespace examples
