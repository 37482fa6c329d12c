#include "make_report.hpp"

#include "rate_text.hpp"
#include "stage_names.hpp"

#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace penstock::pipeline {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// Whom a stage waited for follows from its parts.
void sum_up(stage_report& stage, double run_seconds) {
  stage.bytes_per_second = share(static_cast<double>(stage.bytes), run_seconds);
  for (const time_charge& wait : stage.waits) stage.wait_seconds += wait.seconds;
  const auto most = std::max_element(stage.waits.begin(), stage.waits.end(),
                                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (most != stage.waits.end() && most->seconds > 0) stage.waited_for = most->cause;
}

stage_report of_flow(std::string name, const stage_account& account, clock::time_point now) {
  const stage_account::figures sums = account.read(now);
  stage_report stage;
  stage.name = std::move(name);
  stage.blocks = sums.blocks;
  stage.bytes = sums.bytes;
  stage.busy_seconds = sums.busy_seconds;
  stage.workers = sums.workers;
  stage.mean_at_work = share(sums.busy_seconds, sums.seconds);
  stage.mean_queue = share(sums.waiting_seconds, sums.seconds);
  stage.most_queue = sums.most_waiting;
  return stage;
}

/// Readers without a block wait for what blocks lack at the entrance, or for the end of the run.
std::vector<time_charge> waits_of_readers(const ground& on, const statistics& count, const stage_account::figures& sums,
                                          clock::time_point now) {
  const double slot = count.no_slot.seconds(now), rows = count.no_rows.seconds(now);
  const double lacking = std::min(slot + rows, sums.seconds);
  const double blocked = sums.starved_seconds * share(lacking, sums.seconds);
  return {
      {"a free slot", blocked * share(slot, slot + rows), "slots"},
      {"free rows", blocked * share(rows, slot + rows), "consumer"},
      {"blocks to let in", sums.starved_seconds - blocked, on.sizes.needs_only_reading ? "consumer" : "device thread"},
      {"a processor", sums.held_up_seconds, "processors"}};
}

bool gathers(const ground& on) {
  const auto& straight = on.sizes.straight;
  return !std::all_of(straight.begin(), straight.end(), [](bool s) { return s; }) ||
         !on.fields.device_transforms.empty();
}

std::vector<stage_report> stages_of(const ground& on, const statistics& count, const stage_names& names,
                                    clock::time_point now) {
  std::vector<stage_report> stages;
  stages.push_back(of_flow("read", count.flow[0], now));
  stages.back().waits = waits_of_readers(on, count, count.flow[0].read(now), now);
  for (std::size_t t = 1; t < count.flow.size(); ++t) {
    const stage_account::figures sums = count.flow[t].read(now);
    const std::string before = stages.back().name;
    stages.push_back(of_flow(names.host[t - 1], count.flow[t], now));
    stages.back().workers_are_all = stages.back().workers >= flow_workers(on.sizes.threads);
    stages.back().waits = {{before, sums.starved_seconds, before}, {"a processor", sums.held_up_seconds, "processors"}};
  }
  if (on.sizes.needs_only_reading) return stages;

  // One thread copies, gathers and lets device transforms work: what it waits for, they all wait for.
  stage_report hands = of_flow("device thread", count.hands, now);
  const double seconds = count.hands.read(now).seconds;
  hands.waits = {{"blocks", count.idle[0].seconds(now), "read"},
                 {"free rows", count.idle[1].seconds(now), "consumer"},
                 {"copies", count.idle[2].seconds(now), "copy"}};
  for (const time_charge& wait : hands.waits) hands.busy_seconds -= wait.seconds;
  hands.busy_seconds = std::max(0.0, hands.busy_seconds + seconds);
  hands.mean_at_work = share(hands.busy_seconds, seconds);
  const bool cuda = on.device().is_cuda();
  const auto add = [&](std::string name, const work_sum& sum) {
    stage_report stage;
    stage.name = std::move(name);
    stage.blocks = sum.blocks;
    stage.bytes = sum.bytes;
    stage.busy_seconds = sum.busy.seconds();
    stage.waits = hands.waits;
    stage.waits.push_back(
        {"what else its thread does", std::max(0.0, hands.busy_seconds - stage.busy_seconds), "device thread"});
    stage.workers = 1;
    stage.mean_at_work = share(stage.busy_seconds, seconds);
    stages.push_back(std::move(stage));
  };
  if (cuda) add("copy (issued)", count.copy);
  if (gathers(on)) add(cuda ? "gather (issued)" : "gather", count.gather);
  for (std::size_t t = 0; t < count.device_transforms.size(); ++t)
    add(names.device[t] + (cuda ? " (issued)" : ""), count.device_transforms[t]);
  stages.push_back(std::move(hands));
  return stages;
}

reading_report reading_of(const ground& on) {
  reading_report sum;
  for (const io::row_reader& reader : on.readers) {
    const io::read_statistics part = reader.statistics();
    sum.stored_bytes += part.stored_bytes + part.locked_bytes;
    sum.decoded_bytes += part.decoded_bytes;
    sum.read_seconds += part.read_seconds;
    sum.decode_seconds += part.decode_seconds;
    sum.library_seconds += part.lock_seconds;
  }
  return sum;
}

/// A wait for the thread that issues copies, gathers and device transforms, which is in one of these for other blocks:
/// as they share its time, so is the wait shared.
void add_waits_for_device_thread(const std::string& cause, double seconds, std::span<const stage_report> stages,
                                 std::vector<time_charge>& charges) {
  constexpr std::string_view issued = " (issued)";
  double busy = 0;
  for (const stage_report& stage : stages)
    if (stage.name.ends_with(issued)) busy += stage.busy_seconds;
  for (const stage_report& stage : stages) {
    if (!stage.name.ends_with(issued)) continue;
    const std::string name = stage.name.substr(0, stage.name.size() - issued.size());
    const double part = busy > 0 ? stage.busy_seconds / busy : name == "gather" ? 1 : 0;
    charges.push_back({fmt::format("{} (its thread is in {})", cause, name), seconds * part, name});
  }
}

/// The consumer's waits by states of blocks, in words. A block waits for a thread while all are at work: as they share
/// their time, so is that wait shared.
std::vector<time_charge> charges_of(const ground& on, const std::vector<double>& waits, const stage_names& names,
                                    const std::vector<stage_report>& stages, const reading_report& reading) {
  const bool cuda = on.device().is_cuda();
  const way path = statistics::way_of(on);
  std::vector<time_charge> charges;
  const auto add = [&](std::string cause, std::size_t state, std::string stage, double part = 1) {
    charges.push_back({std::move(cause), waits[state] * part, std::move(stage)});
  };
  add("not in the line yet (the run begins)", way::in_line, "beginning");
  add(cuda ? "waiting for a slot (earlier blocks are being copied)" : "waiting for a slot", way::has_slot,
      cuda ? "copy" : "slots");
  add("waiting for free rows", way::let_in, "consumer");
  double busy = 0;
  for (std::size_t t = 0; t < path.flow_stages; ++t) busy += stages[t].busy_seconds;
  const double all = reading.read_seconds + reading.decode_seconds + reading.library_seconds;
  const double decode = share(reading.decode_seconds, all), library = share(reading.library_seconds, all);
  const double in_files = busy > 0 ? stages[0].busy_seconds / busy : 1;
  add("not yet read (threads are reading)", way::began(0), "read", in_files * (1 - decode - library));
  if (decode > 0) add("not yet read (threads are decoding)", way::began(0), "decode", in_files * decode);
  if (library > 0) add("not yet read (threads are in libhdf5)", way::began(0), "libhdf5", in_files * library);
  for (std::size_t t = 1; t < path.flow_stages && busy > 0; ++t)
    add(fmt::format("not yet read (threads are in {})", stages[t].name), way::began(0), stages[t].name,
        stages[t].busy_seconds / busy);
  add("being read", way::ended(0), "read", 1 - decode - library);
  if (decode > 0) add("being decoded", way::ended(0), "decode", decode);
  if (library > 0) add("being read by libhdf5", way::ended(0), "libhdf5", library);
  for (std::size_t t = 1; t < path.flow_stages; ++t) {
    const std::string& name = names.host[t - 1];
    add("waiting for " + name, way::began(t), name);
    add("in " + name, way::ended(t), name);
  }
  add("waiting for its turn", path.came_out(), "order");
  if (!on.sizes.needs_only_reading)
    add(cuda ? "waiting to be copied" : "waiting for the device thread", path.arrived(), cuda ? "copy" : "gather");
  if (cuda)
    add_waits_for_device_thread("copied, waiting for its gather", waits[path.taken()],
                                std::span(stages).subspan(path.flow_stages), charges);
  else if (!on.sizes.needs_only_reading)
    add("waiting for its gather", path.taken(), "gather");
  if (!on.sizes.needs_only_reading)
    add(cuda ? "copy and gather being issued" : "being gathered", path.gathered(), "gather");
  for (std::size_t t = 0; t < path.device_transforms; ++t) {
    const std::string& name = names.device[t];
    add("in " + name, path.transformed(t), name);
  }
  add("being handed over", path.points(), "handing over");
  if (on.sizes.needs_only_reading)  // nothing comes between its last read and the consumer
    charges.back().seconds += waits[path.arrived()] + waits[path.taken()] + waits[path.gathered()];
  return charges;
}

readers_report readers_of(const ground& on, const statistics& count, std::size_t block_bytes) {
  const reader_tuner::findings found = count.readers.read();
  readers_report r{found.readers, found.start, found.most, on.parts->transport.threads != 0, {}};
  for (const reader_tuner::tried& one : found.measured)
    r.measured.push_back({one.readers, one.blocks_per_second * static_cast<double>(block_bytes)});
  return r;
}

std::string describe(const readers_report& r, const geometry& sizes) {
  if (r.as_asked_for) return fmt::format("{} {}: as asked for", r.now, r.now == 1 ? "reader" : "readers");
  if (r.most == 1) return why_one_reader(sizes);
  std::string text = fmt::format("{} readers, of at most {}: ", r.now, r.most);
  if (sizes.readers_cut_short) text += "the host budget has no room for more; ";
  if (r.measured.empty()) return text + "reading did not hold the run up for long, so that no other number was tried";
  text += fmt::format("began with {}; while reading held the run up, ", r.first);
  for (std::size_t i = 0; i < r.measured.size(); ++i)
    text +=
        fmt::format("{}{} read {}", i ? ", " : "", r.measured[i].readers, rate_text(r.measured[i].bytes_per_second));
  return text;
}

/// The plan's, with the readers as they are now.
std::vector<std::string> choices_of(const ground& on, const readers_report& readers) {
  std::vector<std::string> lines = on.plan.choices;
  if (!lines.empty()) lines.back() = describe(readers, on.sizes);
  return lines;
}

std::vector<memory_use> memory_of(const ground& on, const statistics& count, std::uint64_t most_slots) {
  std::vector<memory_use> uses;
  const geometry& sizes = on.sizes;
  if (sizes.slots)
    uses.push_back({"slots", sizes.slots * sizes.slot_bytes, most_slots * sizes.slot_bytes, sizes.slots_cut_short});
  if (on.device().is_cuda() && sizes.images)
    uses.push_back({"images", sizes.images * sizes.image_bytes, count.images_in_use.value() * sizes.image_bytes});
  std::size_t row_bytes = 0;
  for (const std::size_t field : on.fields.batch) row_bytes += on.fields.device[field].row_bytes();
  uses.push_back(
      {"rings", sizes.ring_rows * row_bytes, count.ring_rows_in_use.value() * row_bytes, sizes.ring_cut_short});
  return uses;
}

device_stall_report stall_of(const ground& on, statistics& count) {
  if (on.device().is_host()) return {};
  try {
    count.stall.collect();
  } catch (const gpu::error&) {
    // A device that failed has told so elsewhere; what was sampled before is still true.
  }
  const device_stall::figures& sums = count.stall.sums();
  return {true, sums.waits, sums.samples, sums.seconds};
}

}  // namespace

pipeline_report make_report(const ground& on, statistics& count, double running_seconds, const machine_limits& limits) {
  const auto now = clock::now();
  pipeline_report r;
  r.epochs = count.epochs;
  r.batches = count.batches;
  r.rows = count.rows;
  r.failures = count.failures;
  std::size_t row_bytes = 0;
  for (const host_field& field : on.fields.host)
    if (field.reader != none) row_bytes += field.row_bytes();
  r.bytes = r.rows * row_bytes;
  r.seconds = count.seconds + running_seconds - to_seconds(count.paused.of(now).paused);
  r.first_batch_seconds = count.first_batch_seconds;

  const stage_names names(on.fields);
  r.stages = stages_of(on, count, names, now);
  for (stage_report& stage : r.stages) sum_up(stage, r.seconds);
  r.reading = reading_of(on);
  r.readers = readers_of(on, count, row_bytes * on.sizes.block_rows);
  r.choices = choices_of(on, r.readers);
  r.consumer_waits = charges_of(on, count.waits, names, r.stages, r.reading);
  r.consumer_wait_seconds = count.wait_seconds;
  r.device_stall = stall_of(on, count);

  const stage_account::figures slots = count.slots.read(now);
  r.slots = on.sizes.slots;
  r.mean_slots_in_use = share(slots.waiting_seconds, slots.seconds);
  r.most_slots_in_use = slots.most_waiting;
  r.memory = memory_of(on, count, slots.most_waiting);
  r.device_bytes = on.plan.ledger.total(gpu::memory_kind::device);
  r.pinned_bytes = on.plan.ledger.total(gpu::memory_kind::pinned);
  r.host_bytes = on.plan.ledger.total(gpu::memory_kind::host);
  if (on.damage) {
    r.damaged_row_count = on.damage->rows();
    r.damaged = on.damage->list();
  }
  r.fields = on.plan.field_reports;
  r.limits = limits;
  r.bottleneck = bottleneck_of(r);
  return r;
}

}  // namespace penstock::pipeline
