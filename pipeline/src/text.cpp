#include "mean_workers.hpp"

#include <penstock/bytes.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/pipeline/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>

namespace penstock::pipeline {
namespace {

/// ", 93 % of what the link gives"; nothing where that is not known.
std::string share_of(std::uint64_t bytes, double seconds, const std::optional<double>& limit, const char* what) {
  if (!limit || *limit <= 0) return {};
  return fmt::format(", {:.0f} % of what the {} gives", 100 * static_cast<double>(bytes) / seconds / *limit, what);
}

std::uint64_t copied_bytes(const pipeline_report& r) {
  for (const stage_report& stage : r.stages)
    if (stage.name == "copy (issued)") return stage.bytes;
  return 0;
}

}  // namespace

std::string to_text(const pipeline_plan& plan) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("{} rows on {}, {}", plan.rows, plan.device.name(), plan.order);
  const std::string slots =
      plan.slots ? fmt::format("{} slots of {}", plan.slots, format_bytes(plan.slot_bytes)) : "no slots";
  line("  batches of {} rows, ring of {} rows; blocks of {} rows, {}, {} threads", plan.batch_rows, plan.ring_rows,
       plan.block_rows, slots, plan.threads);
  for (const std::string& choice : plan.choices) line("  {}", choice);
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
  line("  {:<24}{:>9}{:>11}{:>8}{:>9}{:>9}{:>14}{:>10}", "stage", "blocks", "bytes", "GB/s", "busy s", "at work",
       "queue, most", "idle s");
  for (const stage_report& s : r.stages)
    line("  {:<24}{:>9}{:>11}{:>8}{:>9.3f}{:>9}{:>14}{:>10.3f}{}", s.name, s.blocks,
         s.bytes == 0 ? "-" : format_bytes(s.bytes),
         s.bytes == 0 ? "-" : fmt::format("{:.2f}", s.bytes_per_second / 1e9), s.busy_seconds,
         fmt::format("{:.1f}/{:.3g}", s.mean_at_work, mean_workers(s)),
         fmt::format("{:.1f}, {}", s.mean_queue, s.most_queue), s.wait_seconds,
         s.waited_for.empty() ? "" : "  for " + s.waited_for);
  line("  files: {} read, {:.2f} GB/s{}; {:.3f} s reading, {:.3f} s decoding, {:.3f} s in libhdf5",
       format_bytes(r.reading.stored_bytes), static_cast<double>(r.reading.stored_bytes) / seconds / 1e9,
       share_of(r.reading.stored_bytes, seconds, r.limits.storage_bytes_per_second, "storage"), r.reading.read_seconds,
       r.reading.decode_seconds, r.reading.library_seconds);
  if (r.limits.link_bytes_per_second && r.device_stall.applies)
    line("  copied{}", share_of(copied_bytes(r), seconds, r.limits.link_bytes_per_second, "link"));
  line("  the consumer waited {:.3f} s", r.consumer_wait_seconds);
  for (const auto& charge : r.consumer_waits)
    if (charge.seconds > 0) line("    {:<52}{:>9.3f} s", charge.cause, charge.seconds);
  if (r.device_stall.applies)
    line("  its stream waited {:.3f} s on the device (estimated from {} of {} waits)", r.device_stall.seconds,
         r.device_stall.samples, r.device_stall.waits);
  if (r.slots) line("  slots in use: {:.1f} of {}, {} at most", r.mean_slots_in_use, r.slots, r.most_slots_in_use);
  line("  held: device {}, pinned {}, host {}", format_bytes(r.device_bytes), format_bytes(r.pinned_bytes),
       format_bytes(r.host_bytes));
  for (const memory_use& use : r.memory)
    line("    {:<10} {} planned, {} in use at most", use.what, format_bytes(use.planned_bytes),
         format_bytes(use.peak_bytes));
  for (const std::string& choice : r.choices) line("  {}", choice);
  if (r.failures) line("  {} failures", r.failures);
  for (const std::string& field : r.fields) line("  {}", field);
  if (r.damaged_row_count > 0) line("  damaged rows left out: {}", r.damaged_row_count);
  for (const damaged_rows& part : r.damaged)
    line("    {}: rows {}-{}, {}:{} from row {}: {}", part.field, part.first, part.first + part.count - 1, part.file,
         part.dataset, part.first_stored, part.why);
  line("  bottleneck: {}", r.bottleneck);
  return text;
}

std::ostream& operator<<(std::ostream& out, const pipeline_report& report) { return out << to_text(report); }

}  // namespace penstock::pipeline
