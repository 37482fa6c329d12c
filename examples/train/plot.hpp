#pragma once

#include "results.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace examples {

/// gnuplot's commands for loss and quality against the epoch, of the training set and of the one evaluated on.
std::string plot_of(const std::vector<nlohmann::json>& epochs, const result_form& form, const std::string& title);

}  // namespace examples
