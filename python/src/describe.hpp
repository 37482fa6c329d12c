#pragma once

#include <nanobind/nanobind.h>

#include <penstock/pipeline/calibration.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/pipeline/price.hpp>
#include <penstock/pipeline/report.hpp>

#include <string>

namespace penstock::python {

nanobind::dict describe(const pipeline::pipeline_plan& plan, const gpu::budget& limits);
nanobind::dict describe(const pipeline::calibration& measured);
nanobind::dict describe(const pipeline::pipeline_report& report);
nanobind::dict describe(const pipeline::order_price& price);
/// One dict for each dataset of a file.
nanobind::list inspect(const std::string& file);

}  // namespace penstock::python
