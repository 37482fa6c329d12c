#pragma once

#include "ground.hpp"
#include "statistics.hpp"

#include <penstock/pipeline/report.hpp>

namespace penstock::pipeline {

/// `running_seconds`: wall clock of the run in progress.
pipeline_report make_report(const ground& on, statistics& count, double running_seconds, const machine_limits& limits);

}  // namespace penstock::pipeline
