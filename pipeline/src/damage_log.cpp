#include "damage_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace penstock::pipeline {
namespace {

/// Where `rows`, which cannot be read as a whole, are cut: 0 where they are not.
std::uint64_t cut_of(const io::row_reader& reader, extent rows) {
  const auto& segment = reader.segment_of(rows.first);
  const std::uint64_t end = segment.first_row + segment.rows;
  if (rows.first + rows.count > end) return end - rows.first;
  const auto& info = segment.info;
  const bool single = info.filters.empty() || info.chunk_shape.empty() || info.access == io::access::staged;
  const std::uint64_t step = single ? 1 : info.chunk_shape[segment.where.row_axis];
  const std::uint64_t first = rows.first - segment.first_row;  // in the dataset, whose chunks count from its start
  const std::uint64_t first_chunk = first / step, last_chunk = (first + rows.count - 1) / step;
  if (first_chunk == last_chunk) return 0;
  return (first_chunk + (last_chunk - first_chunk + 1) / 2) * step - first;
}

bool joins(const damaged_rows& a, const damaged_rows& b) {
  return a.field == b.field && a.file == b.file && a.dataset == b.dataset && a.first + a.count >= b.first;
}

template <class T>
void write_mask_of(extent rows, std::span<const extent> skipped, std::byte* out) {
  std::size_t next = 0;
  for (std::uint64_t row = rows.first; row < rows.first + rows.count; ++row, out += sizeof(T)) {
    while (next < skipped.size() && skipped[next].first + skipped[next].count <= row) ++next;
    const bool intact = next == skipped.size() || skipped[next].first > row;
    const T value{static_cast<T>(intact)};
    std::memcpy(out, &value, sizeof value);
  }
}

}  // namespace

void damage_log::read(const std::string& field, const io::row_reader& reader, extent rows, std::span<std::byte> out,
                      std::vector<extent>& skipped) {
  const auto leave_out = [&] {
    std::fill(out.begin(), out.end(), std::byte{0});
    skipped.push_back(rows);
  };
  if (is_known(field, rows)) return leave_out();
  try {
    return reader.read(rows.first, rows.count, out);
  } catch (const io::error& e) {
    if (!e.context().damaged) throw;
    if (cut_of(reader, rows) == 0) {
      note(field, reader, rows, e);
      return leave_out();
    }
  }
  const std::uint64_t cut = cut_of(reader, rows);
  const std::size_t bytes = cut * reader.row_bytes();
  read(field, reader, {rows.first, cut}, out.first(bytes), skipped);
  read(field, reader, {rows.first + cut, rows.count - cut}, out.subspan(bytes), skipped);
}

bool damage_log::is_known(const std::string& field, extent rows) const {
  const std::lock_guard lock(mutex_);
  if (count_at_ == 0) return false;  // beyond the limit each is an error again, in the next run, too
  const auto after = parts_.upper_bound({field, rows.first});
  if (after == parts_.begin()) return false;
  const damaged_rows& part = std::prev(after)->second;
  return part.field == field && rows.first + rows.count <= part.first + part.count;
}

/// Makes one part of two that touch.
damage_log::parts::iterator damage_log::join(parts::iterator left, parts::iterator right) {
  damaged_rows& a = left->second;
  const damaged_rows& b = right->second;
  rows_of_parts_ -= a.count + b.count;
  a.count = std::max(a.first + a.count, b.first + b.count) - a.first;
  rows_of_parts_ += a.count;
  parts_.erase(right);
  return left;
}

void damage_log::note(const std::string& field, const io::row_reader& reader, extent rows, const io::error& why) {
  const auto& segment = reader.segment_of(rows.first);
  const std::lock_guard lock(mutex_);
  damaged_rows part{.field = field,
                    .first = rows.first,
                    .count = rows.count,
                    .file = segment.where.file.string(),
                    .dataset = segment.where.dataset,
                    .first_stored = rows.first - segment.first_row,
                    .why = why.what()};
  const auto [inserted, is_new] = parts_.try_emplace({field, rows.first});
  auto at = inserted;
  if (is_new || at->second.count < rows.count) {
    rows_of_parts_ += rows.count - at->second.count;
    at->second = std::move(part);
  }
  if (at != parts_.begin() && joins(std::prev(at)->second, at->second)) at = join(std::prev(at), at);
  while (std::next(at) != parts_.end() && joins(at->second, std::next(at)->second)) at = join(at, std::next(at));
  if (rows_of_parts_ <= count_at_) return;
  const std::uint64_t all = count_rows();
  count_at_ = all > options_.limit_rows ? 0 : rows_of_parts_ + options_.limit_rows - all;
  if (count_at_ == 0)
    throw penstock::error(fmt::format("{}; {} rows are damaged by now, and the source lets {} be left out", why.what(),
                                      all, options_.limit_rows));
}

std::uint64_t damage_log::count_rows() const {
  std::vector<extent> all;
  for (const auto& [place, part] : parts_) all.push_back({part.first, part.count});
  std::uint64_t count = 0;
  for (const extent& e : joined(std::move(all))) count += e.count;
  return count;
}

std::vector<damaged_rows> damage_log::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<damaged_rows> all;
  for (const auto& [place, part] : parts_) all.push_back(part);
  return all;
}

std::uint64_t damage_log::rows() const {
  const std::lock_guard lock(mutex_);
  return count_rows();
}

std::vector<extent> joined(std::vector<extent> all) {
  std::sort(all.begin(), all.end(), [](const extent& a, const extent& b) { return a.first < b.first; });
  std::vector<extent> apart;
  for (const extent& e : all) {
    if (!apart.empty() && e.first <= apart.back().first + apart.back().count)
      apart.back().count = std::max(apart.back().first + apart.back().count, e.first + e.count) - apart.back().first;
    else
      apart.push_back(e);
  }
  return apart;
}

void write_mask(extent rows, std::span<const extent> skipped, type as, std::byte* out) {
  if (as == type::float64) return write_mask_of<double>(rows, skipped, out);
  if (as == type::uint8) return write_mask_of<std::uint8_t>(rows, skipped, out);
  write_mask_of<float>(rows, skipped, out);
}

}  // namespace penstock::pipeline
