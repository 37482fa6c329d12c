#pragma once

#include <penstock/pipeline/report.hpp>

namespace penstock::pipeline {

/// How many workers a stage had in the mean over time, at work or idle, as mean_at_work is of those at work: their
/// number may change while a run goes on, and `workers` are those there are now. Pure.
inline double mean_workers(const stage_report& stage) {
  // Without waits: always as many. Without work: none to compare with.
  if (stage.waits.empty() || stage.busy_seconds <= 0) return static_cast<double>(stage.workers);
  return stage.mean_at_work * (stage.busy_seconds + stage.wait_seconds) / stage.busy_seconds;
}

}  // namespace penstock::pipeline
