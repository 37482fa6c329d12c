#pragma once

#include "meters.hpp"
#include "opened_impl.hpp"

#include <memory>
#include <optional>

namespace penstock::pipeline {

/// Streams the rows of a plan, made for `wish`, on `memory` for about `slice`, from batch `at` on, and gives the stored
/// bytes per second once everything that is used in turn was used; nothing where too little came in three times that.
/// Batches are given back at once. `at` is then where to go on. No other number of readers is tried meanwhile. Throws
/// what ends a run.
std::optional<double> stream_for(clock::duration slice, opened::impl& source, const pipeline_plan& plan,
                                 const transport_options& wish, std::shared_ptr<gpu::memory> memory, run_position& at);

}  // namespace penstock::pipeline
