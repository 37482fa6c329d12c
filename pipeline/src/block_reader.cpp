#include "block_reader.hpp"

#include "byte_swap.hpp"

#include <penstock/io/error.hpp>
#include <penstock/pipeline/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace penstock::pipeline {
namespace {

/// Where the first of the rows comes from, in the source's first field.
void place_first_row(const ground& on, std::span<const extent> extents, error::place& where) {
  if (on.readers.empty() || extents.empty()) return;
  const io::location& from = on.readers.front().segment_of(extents.front().first).where;
  where.file = from.file.string();
  where.dataset = from.dataset;
}

}  // namespace

std::vector<extent> rows_read(const order& rows, const block_place& place) {
  std::vector<extent> extents;
  rows.read(place.epoch, place.first, place.rows, extents);
  return extents;
}

std::vector<extent> rows_drawn(const order& rows, std::uint64_t epoch, std::uint64_t first, std::uint64_t count) {
  std::vector<extent> extents;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = rows.row(epoch, first + i);
    if (!extents.empty() && extents.back().first + extents.back().count == row)
      ++extents.back().count;
    else
      extents.push_back({row, 1});
  }
  return extents;
}

piece named_rows(piece p, std::uint64_t epoch_rows) {
  if (!p.padding) return p;
  p.rows = std::min<std::uint64_t>(epoch_rows, 1);
  p.first = epoch_rows - p.rows;
  return p;
}

std::string describe_rows(std::span<const extent> extents) {
  constexpr std::size_t shown = 3;
  if (extents.empty()) return "no row";
  std::string text = "rows ";
  for (std::size_t i = 0; i < std::min(shown, extents.size()); ++i)
    text += fmt::format("{}{}-{}", i ? ", " : "", extents[i].first, extents[i].first + extents[i].count - 1);
  if (extents.size() > shown) text += fmt::format(" and {} more ranges", extents.size() - shown);
  return text;
}

error located_error(const ground& on, const failed_work& work, const block_place& place,
                    std::span<const extent> extents, std::exception_ptr cause) {
  using enum failed_work::when;
  error::place where{work.stage, place.epoch, place.first, place.rows, describe_rows(extents)};
  place_first_row(on, extents, where);
  std::string from = where.file.empty() ? "" : fmt::format(", from {} of {}", where.dataset, where.file);
  std::string why = "unknown exception";
  if (cause) try {
      std::rethrow_exception(cause);
    } catch (const io::error& e) {
      why = e.what();
      if (e.context().damaged) why += "; damage_policy::skip (--damaged skip:ROWS) leaves such rows out, up to a limit";
      if (!e.context().file.empty()) {  // it names file and dataset itself
        where.file = e.context().file;
        where.dataset = e.context().dataset;
        from.clear();
      }
    } catch (const std::bad_alloc&) {
      why = "there is not enough host memory";
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
    }
  const std::string sentence =
      fmt::format("{} failed {} {} of epoch {}{}: {}", work.name.empty() ? work.stage : work.name,
                  work.at == at       ? "at"
                  : work.at == before ? "before"
                                      : "at or before",
                  extents.empty() && work.at != at ? "the end" : where.rows, place.epoch, from, why);
  return {sentence, std::move(where), std::move(cause)};
}

std::exception_ptr stage_error(const ground& on, const std::string& stage, const block_place& place,
                               std::span<const extent> extents, std::exception_ptr cause) {
  return std::make_exception_ptr(located_error(on, {.stage = stage}, place, extents, std::move(cause)));
}

std::exception_ptr stage_error_or_cause(const ground& on, const char* stage, const block_place& place, counted how,
                                        std::exception_ptr cause) noexcept {
  try {
    const auto rows =
        how == counted::as_read ? rows_read(on.rows, place) : rows_drawn(on.rows, place.epoch, place.first, place.rows);
    return stage_error(on, stage, place, rows, cause);
  } catch (...) {
    return cause;
  }
}

std::uint64_t block_reader::bytes_of(const block_place& place) const noexcept {
  std::uint64_t bytes = 0;
  for (const host_field& field : on_.fields.host)
    if (field.reader != none) bytes += field.row_bytes() * place.rows;
  return bytes;
}

/// Calls f(rows, where they go) for the block's rows of a host field: in its slot, or straight in the ring, in two
/// parts where the block goes over its end.
template <class F>
void block_reader::for_each_part(std::size_t field, std::span<const extent> extents, const schedule& run,
                                 std::uint64_t block, F f) const {
  const std::size_t row_bytes = on_.fields.host[field].row_bytes();
  if (on_.sizes.host_offsets[field] != none) {
    std::byte* to = on_.slots.at(block) + on_.sizes.host_offsets[field];
    for (const extent& e : extents) {
      f(e, to);
      to += e.count * row_bytes;
    }
    return;
  }
  const gpu::row_ring& ring = on_.rings[on_.fields.conversions[on_.conversion_from(field)].to];
  std::uint64_t position = run.ring_position(run.block(block));
  for (const extent& e : extents)
    for (std::uint64_t done = 0; done < e.count;) {
      const std::uint64_t n = ring.contiguous(position, e.count - done);
      f(extent{e.first + done, n}, ring.at(position));
      done += n, position += n;
    }
}

void block_reader::read(const epoch_run& run, std::uint64_t block) const {
  const block_place place = run.plan.block(block);
  const std::vector<extent> extents = rows_read(on_.rows, place);
  try {
    std::vector<extent> skipped;
    for (std::size_t field = 0; field < on_.fields.host.size(); ++field)
      if (on_.fields.host[field].reader != none) read_field(field, extents, run, block, skipped);
    for (const read_conversion& how : on_.fields.read_conversions) convert(how, block, place.rows);
    if (on_.damage) {
      const type element = on_.fields.host[on_.fields.damage_mask].element;
      skipped = joined(std::move(skipped));
      for_each_part(on_.fields.damage_mask, extents, run.plan, block,
                    [&](extent rows, std::byte* to) { write_mask(rows, skipped, element, to); });
    }
    if (on_.fields.host_row_ids != none) {
      auto* id =
          reinterpret_cast<std::uint64_t*>(on_.slots.at(block) + on_.sizes.host_offsets[on_.fields.host_row_ids]);
      for (const extent& e : extents)
        for (std::uint64_t row = e.first; row < e.first + e.count; ++row) *id++ = row;
    }
  } catch (...) {
    std::rethrow_exception(stage_error(on_, "read", place, extents, std::current_exception()));
  }
}

void block_reader::read_field(std::size_t field, std::span<const extent> extents, const epoch_run& run,
                              std::uint64_t block, std::vector<extent>& skipped) const {
  const host_field& what = on_.fields.host[field];
  const io::row_reader& reader = on_.readers[what.reader];
  const bool swaps = what.swapped && on_.fields.swapped_by_reader;
  // As they lie in storage: rows of one chunk come one after another, and the reader decodes it once for them. Of two,
  // the first may be the end of a tall chunk that is about to give up its place to others.
  std::vector<std::pair<extent, std::byte*>> parts;
  const auto ended = [&run] { return run.between.ended(); };
  for_each_part(field, extents, run.plan, block, [&](extent rows, std::byte* to) { parts.emplace_back(rows, to); });
  if (parts.size() > 2) std::ranges::sort(parts, {}, [](const auto& part) { return part.first.first; });
  for (const auto& [rows, to] : parts) {
    // Rows in random order are many reads, each of which may decode a chunk: nobody waits for the rest of them.
    if (ended()) return;
    const std::span<std::byte> out{to, rows.count * what.row_bytes()};
    if (on_.damage)
      on_.damage->read(what.name, reader, rows, out, skipped, ended);
    else
      reader.read(rows.first, rows.count, out);
    if (swaps) swap_bytes(out, size_of(what.element));
  }
}

/// From one part of the block's slot to another.
void block_reader::convert(const read_conversion& how, std::uint64_t block, std::uint64_t rows) const {
  const host_field& from = on_.fields.host[how.from];
  std::byte* const slot = on_.slots.at(block);
  const gpu::gather_source source{.base = slot,
                                  .image_bytes = on_.slots.slot_bytes(),
                                  .offset = on_.sizes.host_offsets[how.from],
                                  .image_rows = on_.sizes.block_rows,
                                  .element = from.element,
                                  .swapped = from.swapped};
  const gpu::gather_target target{slot + on_.sizes.host_offsets[how.to], on_.sizes.block_rows,
                                  on_.fields.host[how.to].element};
  gpu::gatherer convert_rows{gpu::stream_ref()};
  convert_rows(source, target, from.elements, {}, 0, 0, rows, how.arithmetic);
}

std::vector<block_field> block_reader::fields_of(std::uint64_t block, std::span<const std::size_t> fields) const {
  std::vector<block_field> views;
  for (const std::size_t field : fields) {
    const host_field& what = on_.fields.host[field];
    views.push_back({what.name, what.element, what.row_bytes(), on_.slots.at(block) + on_.sizes.host_offsets[field]});
  }
  return views;
}

void block_reader::apply(const schedule& run, std::uint64_t block, std::size_t transform) const {
  const wired_transform& step = on_.fields.host_transforms[transform];
  const block_place place = run.block(block);
  const auto inputs = fields_of(block, step.inputs), outputs = fields_of(block, step.outputs);
  const auto* ids =
      reinterpret_cast<const std::uint64_t*>(on_.slots.at(block) + on_.sizes.host_offsets[on_.fields.host_row_ids]);
  try {
    step.function(
        penstock::pipeline::block(on_.rows.seed(), place.epoch, place.rows, ids, inputs, outputs, gpu::stream_ref()));
  } catch (...) {
    std::rethrow_exception(stage_error(on_, step.name, place, rows_read(on_.rows, place), std::current_exception()));
  }
}

}  // namespace penstock::pipeline
