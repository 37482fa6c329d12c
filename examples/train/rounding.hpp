#pragma once

#include <penstock/io/location.hpp>
#include <penstock/train/stage.hpp>

#include <string>
#include <vector>

namespace examples {

/// A sentence for each column of the inputs whose differences float32 does not keep, which inputs become on their way:
/// their deviation is below 1e-5 of their mean, as that of time stamps. `statistics` are of the values that arrived;
/// where they look the same, the file's first values tell whether they were. At most eight, and how many more there
/// are. Empty where inputs are stored in a type that float32 holds. Throws io::error.
std::vector<std::string> rounded_columns(const std::vector<penstock::io::location>& x,
                                         const penstock::train::input_statistics& statistics);

/// The same of inputs, or targets that are values, of which there are no statistics: by up to 65,536 rows from all over
/// the dataset, 64 MiB at most. Throws io::error.
std::vector<std::string> rounded_columns(const std::vector<penstock::io::location>& values);

}  // namespace examples
