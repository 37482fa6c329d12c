#include "describe.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <penstock/io/file.hpp>

#include <algorithm>
#include <vector>

#include "errors.hpp"
#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

nb::list texts(const std::vector<std::string>& lines) {
  nb::list all;
  for (const std::string& line : lines) all.append(text(line));
  return all;
}

nb::tuple tuple_of(const std::vector<std::uint64_t>& extents) {
  nb::list all;
  for (const std::uint64_t extent : extents) all.append(extent);
  return nb::tuple(all);
}

nb::list ledger_of(const gpu::ledger& ledger) {
  nb::list items;
  for (const gpu::ledger::item& item : ledger.items()) {
    nb::dict entry;
    entry["kind"] = text(name_of(item.kind));
    entry["name"] = text(item.name);
    entry["bytes"] = item.bytes;
    entry["detail"] = text(item.detail);
    items.append(entry);
  }
  return items;
}

nb::list damaged_of(const pipeline::pipeline_report& report) {
  nb::list all;
  for (const pipeline::damaged_rows& rows : report.damaged) {
    nb::dict entry;
    entry["field"] = text(rows.field);
    entry["first"] = rows.first;
    entry["count"] = rows.count;
    entry["file"] = name(rows.file);
    entry["dataset"] = name(rows.dataset);
    entry["first_stored"] = rows.first_stored;
    entry["why"] = text(rows.why);
    all.append(entry);
  }
  return all;
}

nb::list memory_of(const pipeline::pipeline_report& report) {
  nb::list all;
  for (const pipeline::memory_use& use : report.memory) {
    nb::dict entry;
    entry["what"] = text(use.what);
    entry["planned_bytes"] = use.planned_bytes;
    entry["peak_bytes"] = use.peak_bytes;
    entry["cut_short"] = use.cut_short;
    all.append(entry);
  }
  return all;
}

nb::dict describe_dataset(const io::dataset_info& info) {
  nb::dict d;
  d["path"] = name(info.path);
  d["shape"] = tuple_of(info.shape);
  d["dtype"] = info.element ? nb::object(text(info.element->numpy)) : nb::none();
  d["type_text"] = text(info.type_text);
  d["layout"] = text(name_of(info.layout));
  d["chunks"] = info.chunk_shape.empty() ? nb::none() : nb::object(tuple_of(info.chunk_shape));
  nb::list filters;
  for (const io::filter& filter : info.filters) filters.append(text(filter.name));
  d["filters"] = nb::tuple(filters);
  d["stored_bytes"] = info.stored_bytes;
  d["access"] = text(name_of(info.access));
  d["reason"] = text(info.reason);
  d["missing_sources"] = nb::tuple(texts(info.missing_sources));
  d["unreadable"] = text(info.unreadable);
  return d;
}

nb::object number_or_none(bool is_known, double number) {
  return is_known ? nb::object(nb::float_(number)) : nb::none();
}

nb::list stages_of(const pipeline::pipeline_report& report) {
  nb::list all;
  for (const pipeline::stage_report& stage : report.stages) {
    nb::dict entry;
    entry["name"] = text(stage.name);
    entry["blocks"] = stage.blocks;
    entry["bytes"] = stage.bytes;
    entry["bytes_per_second"] = stage.bytes_per_second;
    entry["busy_seconds"] = stage.busy_seconds;
    entry["wait_seconds"] = stage.wait_seconds;
    entry["waited_for"] = text(stage.waited_for);
    nb::dict waits;
    for (const auto& charge : stage.waits) waits[text(charge.cause)] = charge.seconds;
    entry["waits"] = waits;
    entry["workers"] = stage.workers;
    entry["mean_at_work"] = stage.mean_at_work;
    entry["mean_queue"] = stage.mean_queue;
    entry["most_queue"] = stage.most_queue;
    all.append(entry);
  }
  return all;
}

nb::dict reading_of(const pipeline::pipeline_report& report) {
  nb::dict d;
  d["stored_bytes"] = report.reading.stored_bytes;
  d["decoded_bytes"] = report.reading.decoded_bytes;
  d["read_seconds"] = report.reading.read_seconds;
  d["decode_seconds"] = report.reading.decode_seconds;
  d["library_seconds"] = report.reading.library_seconds;
  return d;
}

nb::dict readers_of(const pipeline::pipeline_report& report) {
  nb::dict d;
  d["now"] = report.readers.now;
  d["first"] = report.readers.first;
  d["most"] = report.readers.most;
  d["as_asked_for"] = report.readers.as_asked_for;
  nb::list measured;
  for (const auto& tried : report.readers.measured) {
    nb::dict entry;
    entry["readers"] = tried.readers;
    entry["bytes_per_second"] = tried.bytes_per_second;
    measured.append(entry);
  }
  d["measured"] = measured;
  return d;
}

/// What part of what the machine could do was used; None where nobody said what that is, or nothing is copied.
void add_shares(nb::dict& to, const pipeline::pipeline_report& report) {
  const auto& [link, storage] = report.limits;
  const auto copies = std::find_if(report.stages.begin(), report.stages.end(),
                                   [](const auto& stage) { return stage.name == "copy (issued)"; });
  const bool copied = link && copies != report.stages.end(), is_read = storage && report.seconds > 0;
  to["link_share"] = number_or_none(copied, copied ? copies->bytes_per_second / *link : 0);
  to["storage_share"] = number_or_none(
      is_read, is_read ? static_cast<double>(report.reading.stored_bytes) / report.seconds / *storage : 0);
}

nb::list tried_of(const std::vector<pipeline::calibration::tried>& all) {
  nb::list entries;
  for (const pipeline::calibration::tried& one : all) {
    nb::dict entry;
    entry["block_bytes"] = one.block_bytes;
    entry["slots"] = one.slots;
    entry["slots_bytes"] = one.slots_bytes;
    entry["bytes_per_second"] = one.bytes_per_second;
    entries.append(entry);
  }
  return entries;
}

}  // namespace

nb::dict describe(const pipeline::calibration& measured) {
  nb::dict d;
  d["blocks"] = tried_of(measured.blocks);
  d["slots"] = tried_of(measured.slots);
  d["block_reason"] = text(measured.block_reason);
  d["slots_reason"] = text(measured.slots_reason);
  return d;
}

nb::dict describe(const pipeline::pipeline_plan& plan, const gpu::budget& limits) {
  nb::dict d;
  d["device"] = text(plan.device.name());
  d["rows"] = plan.rows;
  d["batch_rows"] = plan.batch_rows;
  d["held"] = plan.held_batches;
  d["block_rows"] = plan.block_rows;
  d["slot_bytes"] = plan.slot_bytes;
  d["slots"] = plan.slots;
  d["ring_rows"] = plan.ring_rows;
  d["threads"] = plan.threads;
  d["order"] = text(plan.order);
  nb::list fields;
  for (const pipeline::field_shape& field : plan.fields) {
    nb::dict entry;
    entry["name"] = text(field.name);
    entry["dtype"] = text(name_of(field.element));
    entry["row_shape"] = tuple_of(field.row_shape);
    fields.append(entry);
  }
  d["fields"] = fields;
  d["access"] = texts(plan.field_reports);
  d["choices"] = texts(plan.choices);
  d["ledger"] = ledger_of(plan.ledger);
  d["text"] = text(to_text(plan) + gpu::to_text(plan.ledger, limits));
  return d;
}

nb::dict describe(const pipeline::pipeline_report& report) {
  nb::dict d;
  d["epochs"] = report.epochs;
  d["batches"] = report.batches;
  d["rows"] = report.rows;
  d["bytes"] = report.bytes;
  d["failures"] = report.failures;
  d["seconds"] = report.seconds;
  d["first_batch_seconds"] = report.first_batch_seconds;
  d["stages"] = stages_of(report);
  d["reading"] = reading_of(report);
  d["readers"] = readers_of(report);
  nb::dict waits;
  for (const auto& charge : report.consumer_waits) waits[text(charge.cause)] = charge.seconds;
  d["consumer_waits"] = waits;
  d["consumer_wait_seconds"] = report.consumer_wait_seconds;
  const pipeline::device_stall_report& stall = report.device_stall;
  d["device_stalled_seconds"] = number_or_none(stall.applies, stall.seconds);
  d["device_waits"] = stall.waits;
  d["device_wait_samples"] = stall.samples;
  d["slots"] = report.slots;
  d["mean_slots_in_use"] = report.mean_slots_in_use;
  d["most_slots_in_use"] = report.most_slots_in_use;
  d["memory"] = memory_of(report);
  d["device_bytes"] = report.device_bytes;
  d["pinned_bytes"] = report.pinned_bytes;
  d["host_bytes"] = report.host_bytes;
  d["fields"] = texts(report.fields);
  d["choices"] = texts(report.choices);
  d["damaged_row_count"] = report.damaged_row_count;
  d["damaged"] = damaged_of(report);
  add_shares(d, report);
  d["bottleneck"] = text(report.bottleneck);
  d["text"] = text(to_text(report));
  return d;
}

nb::dict describe(const pipeline::order_price& price) {
  nb::dict d;
  d["pool_bytes"] = price.pool_bytes;
  d["table_bytes"] = price.table_bytes;
  d["read_amplification"] = price.read_amplification;
  const auto known = [](const std::optional<double>& share) {
    return share ? nb::object(nb::float_(*share)) : nb::none();
  };
  d["mixing"] = known(price.mixing);
  d["batches_of_one_source"] = known(price.batches_of_one_source);
  d["text"] = text(to_text(price));
  return d;
}

nb::list inspect(const std::string& file) {
  const auto datasets = [&] {
    const without_gil unlocked;
    return io::file(file).datasets();
  }();
  nb::list all;
  for (const io::dataset_info& info : datasets) all.append(describe_dataset(info));
  return all;
}

}  // namespace penstock::python
