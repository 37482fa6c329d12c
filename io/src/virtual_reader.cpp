#include "virtual_reader.hpp"

#include "failure.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace penstock::io {
namespace {

constexpr std::size_t most_compared = 512;  // mappings, each with each

/// Rows of the virtual dataset that show `rows` of a source: among the positions first to last of the mapping along its
/// rows, which were wanted.
row_range shown_rows(const virtual_mapping& m, std::size_t row_axis, std::uint64_t first, std::uint64_t last,
                     const std::optional<row_range>& rows) {
  for (std::size_t k = 0; rows && k < m.source.rank; ++k) {
    if (m.source.count[k] == 1 || m.target_axis[k] != row_axis) continue;
    const auto start = m.source.start[k], step = k == 0 ? m.source_step : 1;
    const auto end = rows->first + rows->count;
    if (rows->first > start) first = std::max(first, (rows->first - start + step - 1) / step);
    if (end > start) last = std::min(last, (end - 1 - start) / step);
  }
  return {m.target.start[row_axis] + first * m.step[row_axis], (last - first) * m.step[row_axis] + 1};
}

/// Rows of the virtual dataset that show the rows of a source that are lost; none where they have no one step.
lost_rows shown_of_lost(const virtual_mapping& m, std::size_t row_axis, const lost_rows& lost) {
  if (lost.count == 0) return {};
  const auto target = m.target.start[row_axis];
  for (std::size_t k = 0; k < m.source.rank; ++k) {
    if (m.source.count[k] == 1 || m.target_axis[k] != row_axis) continue;
    const auto start = m.source.start[k], step = k == 0 ? m.source_step : 1;
    if (lost.step > 1 && step > 1) return {};
    // Positions of the mapping: from the first on that is not before a lost row, before the first that is behind all.
    const auto position = [&](std::uint64_t row) { return row > start ? (row - start + step - 1) / step : 0; };
    const auto skipped = start > lost.first ? (start - lost.first + lost.step - 1) / lost.step : 0;
    if (skipped >= lost.count) return {};
    const auto first = position(lost.first + skipped * lost.step);
    const auto end = std::min(position(lost.first + (lost.count - 1) * lost.step + 1), m.source.count[k]);
    if (end <= first) return {};
    return {target + first * m.step[row_axis], (end - first - 1) / lost.step + 1, lost.step * m.step[row_axis]};
  }
  return {target, 1};  // one row of the virtual dataset shows a whole source
}

}  // namespace

virtual_reader::virtual_reader(const dataset_description& d, std::vector<part> parts)
    : parts_(std::move(parts)), fill_value_(d.fill_value), values_(d.values()), covered_(covered()) {}

bool virtual_reader::covered() const {
  if (parts_.size() > most_compared) return false;
  std::uint64_t values = 0;
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    const auto& m = parts_[a].mapping;
    if (!parts_[a].reader) return false;
    for (std::size_t k = 0; k < m.target.rank; ++k)
      if (m.step[k] != 1 && m.target.count[k] > 1) return false;
    for (std::size_t b = 0; b < a; ++b)
      if (!intersection(m.target, parts_[b].mapping.target).empty()) return false;
    values += m.target.values();
  }
  return values == values_;
}

reader_memory virtual_reader::memory(std::size_t row_axis) const {
  reader_memory all;
  all.mapping_bytes = parts_.size() * sizeof(part);
  std::map<std::uint64_t, std::size_t> cut;  // sources that lie side by side are cut together
  std::set<const dataset_reader*> held;
  for (const auto& p : parts_) {
    if (!p.reader) continue;
    const auto axis = p.mapping.source_axis_of(row_axis);
    const auto m = p.reader->memory(axis);
    all.cut_rows = std::max(all.cut_rows, p.mapping.shown_rows(m.cut_rows, row_axis));
    all.scratch.include(m.scratch);
    all.check_bytes = std::max(all.check_bytes, m.check_bytes);
    all.library_bytes = std::max(all.library_bytes, m.library_bytes);
    if (held.insert(p.reader.get()).second) {
      all.index_bytes += m.index_bytes;
      all.mapping_bytes += m.mapping_bytes;
      all.staged_bytes += m.staged_bytes;
      all.library_datasets += m.library_datasets;
    }
    all.chunk_bytes = std::max(all.chunk_bytes, m.chunk_bytes);
    cut[p.mapping.target.start[row_axis]] += m.cut_chunks;
  }
  for (const auto& [start, chunks] : cut) all.cut_chunks = std::max(all.cut_chunks, chunks);
  return all;
}

std::uint64_t virtual_reader::decoded_rows(std::size_t row_axis) const {
  std::uint64_t rows = 0;
  for (const auto& p : parts_)
    if (p.reader)
      rows = std::max(rows, p.mapping.shown_rows(p.reader->decoded_rows(p.mapping.source_axis_of(row_axis)), row_axis));
  return rows;
}

void virtual_reader::read(const read_request& request, scratch& s) const {
  if (!covered_) fill_value_.fill(request.part.count, request.part.rank, request.strides, request.out);
  for (const auto& p : parts_)
    if (p.reader) read_part(p, request, s);
}

void virtual_reader::read_part(const part& p, const read_request& request, scratch& s) const {
  const auto& m = p.mapping;
  extents first{}, count{};  // of the mapping's positions, along the axes of the virtual dataset
  std::byte* out = request.out;
  for (std::size_t k = 0; k < m.target.rank; ++k) {
    const auto start = m.target.start[k], step = m.step[k];
    const auto wanted = request.part.start[k], wanted_end = wanted + request.part.count[k];
    first[k] = wanted > start ? (wanted - start + step - 1) / step : 0;
    const auto end = wanted_end > start ? std::min(m.target.count[k], (wanted_end - start + step - 1) / step) : 0;
    if (end <= first[k]) return;
    count[k] = end - first[k];
    out += (start + first[k] * step - wanted) * request.strides[k];
  }
  read_request from;
  from.part = m.source;
  from.out = out;
  for (std::size_t k = 0; k < m.source.rank; ++k) {
    if (m.source.count[k] == 1) continue;
    const auto t = m.target_axis[k];
    from.part.start[k] = m.source.start[k] + first[t] * (k == 0 ? m.source_step : 1);
    from.part.count[k] = count[t];
    from.strides[k] = request.strides[t] * m.step[t];
    if (t == request.row_axis) from.row_axis = k;
  }
  try {
    read_source(p, from, s);
  } catch (failure& e) {
    const auto axis = request.row_axis;
    e.rows = shown_rows(m, axis, first[axis], first[axis] + count[axis] - 1, e.rows);
    e.lost = shown_of_lost(m, axis, e.lost);
    throw;
  }
}

void virtual_reader::read_source(const part& p, read_request from, scratch& s) const {
  const auto step = p.mapping.source_step;
  if (step == 1) return p.reader->read(from, s);
  for (auto left = std::exchange(from.part.count[0], 1); left > 0; --left) {
    p.reader->read(from, s);
    from.part.start[0] += step;
    from.out += from.strides[0];
  }
}

}  // namespace penstock::io
