#include "damage_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace penstock::pipeline {
namespace {

/// As many of `rows` as lie in the dataset of the first.
extent in_one_dataset(const io::row_reader& reader, extent rows) {
  const auto& segment = reader.segment_of(rows.first);
  return {rows.first, std::min(rows.count, segment.first_row + segment.rows - rows.first)};
}

/// Where `rows` of one dataset, which cannot be read as a whole, are cut: 0 where they are not.
std::uint64_t cut_of(const io::row_reader& reader, extent rows) {
  const auto& segment = reader.segment_of(rows.first);
  const auto& info = segment.info;
  const bool single = info.filters.empty() || info.chunk_shape.empty() || info.access == io::access::staged;
  const std::uint64_t step = single ? 1 : info.chunk_shape[segment.where.row_axis];
  const std::uint64_t first = rows.first - segment.first_row;  // in the dataset, whose chunks count from its start
  const std::uint64_t first_chunk = first / step, last_chunk = (first + rows.count - 1) / step;
  if (first_chunk == last_chunk) return 0;
  return (first_chunk + (last_chunk - first_chunk + 1) / 2) * step - first;
}

/// The first run of `rows` that is lost; none where none is.
extent first_lost(const io::lost_rows& lost, extent rows) {
  const std::uint64_t end = rows.first + rows.count;
  if (lost.count == 0 || end <= lost.first) return {};
  const std::uint64_t n = rows.first > lost.first ? (rows.first - lost.first + lost.step - 1) / lost.step : 0;
  if (n >= lost.count || end <= lost.first + n * lost.step) return {};
  const std::uint64_t first = lost.first + n * lost.step;
  return {first, lost.step > 1 ? 1 : std::min(lost.first + lost.count, end) - first};
}

/// Rows that are still to be read, in pieces that are cut in two where they cannot be. What an error says to be lost as
/// a whole is no piece to read again: each read would decode what is damaged, to the place where it is.
class pieces {
 public:
  pieces(const io::row_reader& reader, extent rows) : reader_(reader) {
    if (rows.count > 0) left_.push_back(rows);
  }

  bool empty() const noexcept { return left_.empty(); }

  struct piece {
    extent rows;                     ///< of one dataset
    const io::error* why = nullptr;  ///< where they are lost; until the next take(), or failed()
  };
  piece take() {
    extent& rest = left_.back();  // the next one
    piece next{in_one_dataset(reader_, rest)};
    extent run{next.rows.first + next.rows.count, 0};
    std::erase_if(lost_, [&](const auto& each) {  // what lies before: pieces come in order
      return each.first.first + (each.first.count - 1) * each.first.step < next.rows.first;
    });
    for (const auto& [rows, why] : lost_)
      if (const extent found = first_lost(rows, next.rows); found.count > 0 && found.first < run.first)
        run = found, next.why = &why;
    if (run.first > next.rows.first)
      next = {{next.rows.first, run.first - next.rows.first}};
    else
      next.rows = run;
    rest = {rest.first + next.rows.count, rest.count - next.rows.count};
    if (rest.count == 0) left_.pop_back();
    return next;
  }

  /// Of a piece that was taken, and is damaged. False where there is nothing to cut: it is lost.
  bool failed(extent rows, const io::error& why) {
    io::lost_rows lost = why.context().lost;
    lost.first += reader_.segment_of(rows.first).first_row;
    const extent run = first_lost(lost, rows);
    if (run.count > 0) lost_.emplace_back(lost, why);
    if (run.count == rows.count) return false;
    const std::uint64_t cut = cut_of(reader_, rows);
    if (run.count == 0 && cut == 0) return false;
    if (cut > 0) left_.push_back({rows.first + cut, rows.count - cut});
    left_.push_back({rows.first, cut > 0 ? cut : rows.count});
    return true;
  }

 private:
  const io::row_reader& reader_;
  std::vector<extent> left_;
  std::vector<std::pair<io::lost_rows, io::error>> lost_;  // of the field; not yet passed
};

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
                      std::vector<extent>& skipped, const std::function<bool()>& ended) {
  const std::size_t row_bytes = reader.row_bytes();
  pieces left(reader, rows);
  while (!left.empty() && !ended()) {
    const auto [part, why] = left.take();
    const auto place = out.subspan((part.first - rows.first) * row_bytes, part.count * row_bytes);
    const auto leave_out = [&, part = part] {
      std::fill(place.begin(), place.end(), std::byte{0});
      skipped.push_back(part);
    };
    if (why) note(field, reader, part, *why);
    if (why || is_known(field, part)) {
      leave_out();
      continue;
    }
    try {
      reader.read(part.first, part.count, place);
    } catch (const io::error& e) {
      if (!e.context().damaged) throw;
      if (left.failed(part, e)) continue;
      note(field, reader, part, e);
      leave_out();
    }
  }
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
  if (count_at_ == 0) {
    io::error_context where = why.context();
    where.damaged = false;  // to leave more out is for the caller to say
    std::string_view sentence = why.what();
    const std::string place = io::error("", why.context()).what();
    if (sentence.starts_with(place)) sentence.remove_prefix(place.size());
    throw io::error(fmt::format("{}; {} rows are damaged by now, and the source lets {} be left out", sentence, all,
                                options_.limit_rows),
                    std::move(where));
  }
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
