#pragma once

#include "data.hpp"

namespace examples {

/// What a model takes in, and what rows weigh, are numbers; an input has one value at least. Throws io::error.
void check_inputs(const training_data& data);

/// Targets that are values are numbers. Throws io::error.
void check_values(const train_options& o, const training_data& data);

/// Refuses options that need rows to evaluate on where there are none, or classes where there are values. Throws
/// std::invalid_argument.
void check_evaluation(const train_options& o, const training_data& data);

}  // namespace examples
