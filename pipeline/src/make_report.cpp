#include "make_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr const char* causes[] = {"a free slot or free rows", "reading and decoding", "host transforms, or its turn",
                                  "copy and delivery"};

stage_report stage(std::string name, const meter& m) {
  return {std::move(name), m.blocks(), m.bytes(), m.busy_seconds(), m.wait_seconds(), {}};
}

/// The stage that holds the consumer back: what its waits are charged to most, where it waits at all.
std::string bottleneck(const pipeline_report& r, const ground& on) {
  if (r.seconds <= 0) return "nothing was consumed yet";
  if (r.consumer_wait_seconds < 0.05 * r.seconds)
    return fmt::format("the consumer: it waited {:.1f} % of the time; batches were ready",
                       100 * r.consumer_wait_seconds / r.seconds);
  const auto worst = std::max_element(r.consumer_waits.begin(), r.consumer_waits.end(),
                                      [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  std::string sentence = fmt::format("{}: {:.0f} % of the time the consumer waited for it", worst->cause,
                                     100 * worst->seconds / r.seconds);
  if (worst->cause == causes[1]) {
    const double rate = static_cast<double>(r.stages.front().bytes) / 1e9 / std::max(r.seconds, 1e-9);
    sentence += fmt::format(" ({:.2f} GB/s by {} threads)", rate, on.sizes.threads);
  }
  return sentence;
}

}  // namespace

pipeline_report make_report(const ground& on, const statistics& count, double running_seconds) {
  pipeline_report r;
  r.epochs = count.epochs;
  r.batches = count.batches;
  r.rows = count.rows;
  std::size_t row_bytes = 0;
  for (const host_field& field : on.fields.host)
    if (field.reader != none) row_bytes += field.row_bytes();
  r.bytes = r.rows * row_bytes;
  r.seconds = count.seconds + running_seconds;
  r.first_batch_seconds = count.first_batch_seconds;

  r.stages.push_back(stage("read", count.read));
  for (std::size_t t = 0; t < count.transforms.size(); ++t)
    r.stages.push_back(stage(on.fields.host_transforms[t].name, count.transforms[t]));
  if (on.device().is_cuda()) r.stages.push_back(stage("copy (issued)", count.copy));
  stage_report deliver = stage(on.device().is_cuda() ? "gather (issued)" : "gather", count.deliver);
  deliver.wait_seconds = count.conductor_idle.busy_seconds() + count.conductor_idle.wait_seconds();
  deliver.waited_for = "blocks, free rows and copies";
  r.stages.push_back(std::move(deliver));

  for (std::size_t cause = 0; cause < count.waits.size(); ++cause)
    r.consumer_waits.push_back({causes[cause], count.waits[cause]});
  r.consumer_wait_seconds = count.wait_seconds;
  r.device_bytes = on.plan.ledger.total(gpu::memory_kind::device);
  r.pinned_bytes = on.plan.ledger.total(gpu::memory_kind::pinned);
  r.host_bytes = on.plan.ledger.total(gpu::memory_kind::host);
  r.fields = on.plan.field_reports;
  r.bottleneck = bottleneck(r, on);
  return r;
}

}  // namespace penstock::pipeline
