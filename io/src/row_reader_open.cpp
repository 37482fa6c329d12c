// Opening the datasets of a field.
#include "datasets_near.hpp"
#include "label_reader.hpp"
#include "read_driver.hpp"
#include "row_reader_impl.hpp"
#include "source_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace penstock::io {
namespace {

/// Where there is no such dataset, the failure names those that there are.
open_dataset open_named(hid_t file, const std::string& path) {
  try {
    return open_dataset(file, path);
  } catch (const failure& e) {
    if (!is_absence(e.system)) throw;
    throw failure(e.what() + datasets_near(file, path), e.system, e.hdf5);
  }
}

}  // namespace

row_reader::impl::impl(std::vector<location> where, const read_options& options) : world(options) {
  if (where.empty()) throw std::invalid_argument("a row_reader needs one dataset or more; the list is empty");
  open_files = std::max<std::size_t>(options.open_files, 1);
  allow_missing_sources = options.allow_missing_sources;
  for (auto& l : where) {
    const auto context = place(l, {});
    with_context(context, [&] { add(std::move(l)); });
  }
  current = {};
  world.opened();
  number_labels();
  sum_up();
  convert(options.values);
}

void row_reader::impl::open_file_of(const location& where) {
  if (current.file && current.path == where.file) return;
  const auto identity = probe(where.file, world.faults);
  current.file = open_hdf5(where.file);
  current.path = where.file;
  current.number = world.add_file(where.file, identity);
}

/// Says where reads around the page cache were asked for and are not possible. Virtual and external data lie in other
/// files: then all that are known are looked at.
void row_reader::impl::tell_caching(dataset_info& info, std::size_t file) {
  if (world.how != caching::around || info.access != access::direct) return;
  const bool elsewhere = info.layout == layout::virtual_dataset || info.reason.find("external") != std::string::npos;
  for (std::size_t n = elsewhere ? 0 : file; n < (elsewhere ? world.files.size() : file + 1); ++n)
    if (const auto why = world.open_raw(n)->why_cached(); !why.empty()) {
      info.reason += "; read through the page cache: " + why;
      return;
    }
}

void row_reader::impl::add(location where) {
  open_file_of(where);
  const open_dataset dataset = open_named(current.file.native(), where.dataset);
  const auto d = std::make_shared<const dataset_description>(describe_dataset(dataset));
  if (!d->info.unreadable.empty())
    throw failure(fmt::format("{} is not read: {}", d->info.type_text, d->info.unreadable));
  const auto part = part_of(*d, where);
  auto mine = format_of(*d, part, where.row_axis);
  if (segments.empty())
    stored = std::move(mine);
  else if (!mine.same_as(stored))
    throw failure(
        fmt::format("its rows are {}, but those of {}:{} are {}; the datasets of a field need one type and row shape",
                    mine.text(), segments[0].where.file.string(), segments[0].where.dataset, stored.text()));
  const auto row_axis = where.row_axis;
  segment s{std::move(where), rows, d->rank > 0 ? part.count[row_axis] : 1, d->info};
  open_segment o;
  o.row_axis = row_axis;
  o.part = part;
  std::uint64_t total_bytes = 0;
  if (__builtin_add_overflow(rows, s.rows, &rows) ||
      __builtin_mul_overflow(rows, std::max<std::uint64_t>(stored.bytes, 1), &total_bytes))
    throw failure("the field has more rows than can be counted");
  const auto file = file_of(world, dataset, {current.number, current.number, current.file.native()}, current.linked);
  // Where libhdf5 reads a virtual dataset, it gives fill values for sources that it does not find, and says nothing.
  const bool is_virtual = s.info.layout == layout::virtual_dataset;
  source_survey sources;
  const auto survey = [&] {
    sources = survey_sources(dataset.id.native(), world.faults);
    s.info.missing_sources = std::move(sources.absent);
    world.short_source = std::move(sources.short_source);
  };
  world.short_source.clear();
  if (is_virtual && d->info.access != access::direct) survey();
  o.reader = open_reader(world, file, dataset, d, s.info);
  if (is_virtual && d->info.access != s.info.access) survey();
  if (s.info.access == access::locked) {
    o.check_bytes = sources.check_bytes;
    o.mapping_bytes = sources.mapping_bytes;
  }
  decoded_rows = std::max(decoded_rows, is_virtual && s.info.access == access::locked
                                            ? decoded_rows_of_sources(dataset.id.native(), row_axis, world.faults)
                                            : o.reader->decoded_rows(row_axis));
  tell_shortage(s.info, is_virtual ? world.short_source : d->external_shortage);
  tell_caching(s.info, file.number);
  if (!allow_missing_sources && !s.info.missing_sources.empty())
    throw failure(fmt::format(
        "it is virtual, and {} of its sources are missing, the first {}; their values would be fill values: "
        "set allow_missing_sources of the options it is read with (field_options of a pipeline, or read_options) to "
        "read them so",
        s.info.missing_sources.size(), s.info.missing_sources.front()));

  o.text_padding = d->value.text_padding;
  o.text_bytes = d->value.text_bytes;
  if (!dataset.member.empty()) {
    o.not_packed = "netCDF's attributes describe whole datasets, not members of a compound";
  } else if (!d->value.labels) {
    try {
      o.packed = read_packing(dataset.id.native(), d->value.element->element);
    } catch (const failure& e) {
      o.not_packed = e.what();
    }
  }
  segments.push_back(std::move(s));
  opened.push_back(std::move(o));
}

/// One code for one text, in all segments: its place among all texts, sorted.
void row_reader::impl::number_labels() {
  std::set<std::string> all;
  for (const auto& o : opened)
    if (const auto* labels = dynamic_cast<const label_reader*>(o.reader.get()))
      for (auto& name : labels->names()) all.insert(std::move(name));
  class_names.assign(all.begin(), all.end());
  for (const auto& o : opened)
    if (auto* labels = dynamic_cast<label_reader*>(o.reader.get())) labels->number_by(class_names);
}

}  // namespace penstock::io
