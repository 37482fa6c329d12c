#pragma once

#include "ground.hpp"

#include <penstock/pipeline/pipeline.hpp>

#include <string>
#include <string_view>

namespace penstock::pipeline {

/// The state of a run on `on` whose next batch is `next`, as JSON.
std::string write_state(const ground& on, run_position next);
/// The position in a state; throws std::invalid_argument where it is no state, or not one of a run on `on`.
run_position read_state(const ground& on, std::string_view state);

}  // namespace penstock::pipeline
