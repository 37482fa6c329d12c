#pragma once

#include "ground.hpp"
#include "statistics.hpp"

#include <penstock/pipeline/report.hpp>

namespace penstock::pipeline {

/// `running_seconds`: wall clock of the run in progress.
pipeline_report make_report(const ground& on, const statistics& count, double running_seconds);

}  // namespace penstock::pipeline
