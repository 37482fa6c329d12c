#pragma once

#include "ground.hpp"
#include "statistics.hpp"

#include <penstock/pipeline/report.hpp>

namespace penstock::pipeline {

pipeline_report make_report(const ground& on, const statistics& count);

}  // namespace penstock::pipeline
