#include <penstock/bytes.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/pipeline/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>

namespace penstock::pipeline {

std::string to_text(const pipeline_plan& plan) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("{} rows on {}, {}", plan.rows, plan.device.name(), plan.order);
  line("  batches of {} rows, ring of {} rows; blocks of {} rows ({}), {} slots, {} threads", plan.batch_rows,
       plan.ring_rows, plan.block_rows, format_bytes(plan.slot_bytes), plan.slots, plan.threads);
  for (const std::string& field : plan.field_reports) line("  {}", field);
  return text;
}

std::string to_text(const pipeline_report& r) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  const double seconds = std::max(r.seconds, 1e-9);
  line("{} rows in {} batches, {:.2f} s: {:.0f} rows/s, {:.3f} GB/s; first batch after {:.1f} ms", r.rows, r.batches,
       r.seconds, static_cast<double>(r.rows) / seconds, static_cast<double>(r.bytes) / seconds / 1e9,
       r.first_batch_seconds * 1e3);
  line("  {:<28}{:>9}{:>12}{:>11}{:>11}", "stage", "blocks", "bytes", "busy s", "waited s");
  for (const stage_report& stage : r.stages)
    line("  {:<28}{:>9}{:>12}{:>11.3f}{:>11.3f}{}", stage.name, stage.blocks, format_bytes(stage.bytes),
         stage.busy_seconds, stage.wait_seconds, stage.waited_for.empty() ? "" : "  for " + stage.waited_for);
  line("  the consumer waited {:.3f} s", r.consumer_wait_seconds);
  for (const auto& charge : r.consumer_waits)
    if (charge.seconds > 0) line("    {:<30}{:>9.3f} s", charge.cause, charge.seconds);
  line("  held: device {}, pinned {}, host {}", format_bytes(r.device_bytes), format_bytes(r.pinned_bytes),
       format_bytes(r.host_bytes));
  for (const std::string& field : r.fields) line("  {}", field);
  line("  bottleneck: {}", r.bottleneck);
  return text;
}

std::ostream& operator<<(std::ostream& out, const pipeline_report& report) { return out << to_text(report); }

}  // namespace penstock::pipeline
