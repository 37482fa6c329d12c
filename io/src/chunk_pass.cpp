#include "chunk_pass.hpp"

#include "chunk_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock::io {
namespace {

[[noreturn]] void past_the_end(const chunk_entry& entry) {
  throw damage(fmt::format(
      "a chunk of {} bytes at byte {} lies past the end of the file, which is truncated: copy or write it again",
      entry.bytes, entry.address));
}

}  // namespace

chunked_reader::pass::pass(const chunked_reader& reader, const read_request& request, scratch& s)
    : reader_(reader),
      request_(request),
      scratch_(s),
      file_(reader.world_.open_raw(reader.file_)),
      reads_(*file_, reader.world_.count, s) {}

/// What fails in `f`, and names no rows yet, has these, of one chunk. What is decoded is whole or not.
template <class F>
void chunked_reader::pass::with_rows(std::uint64_t number, const row_range& rows, F&& f) const {
  try {
    f();
  } catch (failure& e) {
    if (e.rows) throw;
    e.rows = rows;
    if (e.damaged && !reader_.is_plain(reader_.index_[number], reader_.grid_.inside(reader_.grid_.position(number)))) {
      const auto all = rows_of(number);
      e.lost = {all.first, all.count};
    }
    throw;
  }
}

void chunked_reader::pass::run() {
  const auto& part = request_.part;
  const auto& chunk = reader_.grid_.chunk_shape();
  extents first{}, last{};
  for (std::size_t k = 0; k < part.rank; ++k) {
    first[k] = part.start[k] / chunk[k];
    last[k] = (part.start[k] + part.count[k] - 1) / chunk[k];
  }
  if (reader_.index_.sparse())
    visit_stored(first, last);
  else
    visit_all(first, last);
  decode_gathered();
  reads_.flush();
}

void chunked_reader::pass::visit_all(const extents& first, const extents& last) {
  for (auto at = first;;) {
    visit(at);
    std::size_t k = request_.part.rank;
    while (k > 0 && at[k - 1] == last[k - 1]) {
      --k;
      at[k] = first[k];
    }
    if (k == 0) break;
    ++at[k - 1];
  }
}

/// Where few chunks are stored there may be any number of others: they cost nothing but their fill values.
void chunked_reader::pass::visit_stored(const extents& first, const extents& last) {
  const auto& part = request_.part;
  reader_.fill_value_.fill(part.count, part.rank, request_.strides, request_.out);
  for (const auto& stored : reader_.index_.stored_between(reader_.grid_.number(first), reader_.grid_.number(last))) {
    const auto at = reader_.grid_.position(stored.number);
    bool wanted = true;
    for (std::size_t k = 0; k < part.rank; ++k) wanted = wanted && at[k] >= first[k] && at[k] <= last[k];
    if (wanted) visit(at);
  }
}

void chunked_reader::pass::visit(const extents& at) {
  const auto number = reader_.grid_.number(at);
  const auto entry = reader_.index_[number];
  const auto inside = reader_.grid_.inside(at);
  const auto wanted = intersection(inside, request_.part);
  const auto axis = request_.row_axis;
  row_range rows{inside.start[axis], inside.count[axis]};
  with_rows(number, rows, [&] {
    if (entry.address == chunk_entry::missing) {
      reader_.fill_value_.fill(wanted.count, wanted.rank, request_.strides, request_.at(wanted.start));
    } else if (reader_.has_wrong_size(entry, inside)) {
      decode_gathered();  // what is wrong there is told first
      throw entry.bytes == 0 ? no_bytes(reader_.chunk_bytes_) : wrong_size(entry.bytes, reader_.chunk_bytes_);
    } else if (reader_.is_plain(entry, inside) && !spreads_whole(inside, wanted)) {
      rows = {wanted.start[axis], wanted.count[axis]};
      reads_.of_rows(rows);
      read_plain(entry, inside, wanted);
    } else if (reader_.world_.cache && !reader_.is_plain(entry, inside) && wanted.count[axis] != inside.count[axis]) {
      read_cut(number, inside, wanted);
    } else {
      gather(number);
    }
  });
}

/// Whether a small chunk is wanted as a whole, and its rows go to places apart: read with its neighbours, then copied.
bool chunked_reader::pass::spreads_whole(const box& inside, const box& wanted) const {
  if (wanted.count != inside.count) return false;
  if (2 * reader_.chunk_bytes_ > scratch_.stored(0).size()) return false;
  return plan_runs(wanted.count, wanted.rank, reader_.chunk_strides_, request_.strides, reader_.value_bytes_).loops > 0;
}

void chunked_reader::pass::read_plain(const chunk_entry& entry, const box& inside, const box& wanted) {
  // Reading tells what lies past the end, but for an address to which no place within the chunk can be added.
  if (entry.address > file_->bytes()) past_the_end(entry);
  stored_box stored{entry.address + reader_.member_offset_, wanted.rank, wanted.count, reader_.chunk_strides_,
                    reader_.value_bytes_};
  for (std::size_t k = 0; k < wanted.rank; ++k)
    stored.offset += (wanted.start[k] - inside.start[k]) * reader_.chunk_strides_[k];
  read_stored(stored, request_.at(wanted.start), request_.strides, scratch_, reads_);
}

void chunked_reader::pass::read_cut(std::uint64_t number, const box& inside, const box& wanted) {
  const auto rows = inside.count[request_.row_axis];
  auto lease = reader_.world_.cache->acquire({reader_.number_, number}, rows);
  if (!lease) return gather(number);
  const auto chunk = lease->bytes().first(reader_.chunk_bytes_);
  if (lease->must_decode()) {
    decode_to_slot(number, inside, chunk);
    lease->publish();
  }
  copy_out(chunk.data(), inside, wanted);
  lease->used(wanted.count[request_.row_axis]);
}

void chunked_reader::pass::gather(std::uint64_t number) {
  const auto entry = reader_.index_[number];
  if (!lies_inside(entry)) {
    decode_gathered();  // what is wrong there is told first
    past_the_end(entry);
  }
  if (gathered_count_ > 0) {
    const auto last = reader_.index_[gathered_[gathered_count_ - 1]];
    const bool follows = last.address + last.bytes == entry.address;
    if (!follows || gathered_count_ == most_gathered || gathered_bytes_ + entry.bytes > scratch_.stored(0).size())
      decode_gathered();
  }
  gathered_[gathered_count_++] = number;
  gathered_bytes_ += entry.bytes;
}

void chunked_reader::pass::decode_gathered() {
  const auto count = std::exchange(gathered_count_, 0);
  const auto bytes = std::exchange(gathered_bytes_, 0);
  auto stored = count > 1 ? read_together(count, bytes) : std::span<const std::byte>{};
  for (std::size_t n = 0; n < count;) {
    const auto number = gathered_[n];
    with_rows(number, rows_of(number), [&] {
      if (count == 1) stored = read_chunk(reader_.index_[number]);
      if (const auto plain = spread_side_by_side(n, count, stored.data())) {
        stored = stored.subspan(plain * reader_.chunk_bytes_);
        n += plain;
        return;
      }
      const auto size = reader_.index_[number].bytes;
      decode_to_request(number, stored.first(size));
      stored = stored.subspan(size);
      ++n;
    });
  }
}

/// One read. Where it fails each chunk is read by itself, so that the one at fault is named; where none fails then,
/// all.
std::span<const std::byte> chunked_reader::pass::read_together(std::size_t count, std::uint64_t bytes) {
  const auto address = reader_.index_[gathered_[0]].address;
  const auto together = scratch_.stored(address).first(bytes);
  try {
    reads_.read_now(address, together);
  } catch (failure& e) {
    auto all = rows_of(gathered_[0]);
    for (std::size_t n = 0; n < count; ++n) {
      const auto rows = rows_of(gathered_[n]);
      with_rows(gathered_[n], rows, [&] { read_chunk(reader_.index_[gathered_[n]]); });
      all = both(all, rows);
    }
    e.rows = all;
    throw;
  }
  return together;
}

row_range chunked_reader::pass::rows_of(std::uint64_t number) const {
  const auto inside = reader_.grid_.inside(reader_.grid_.position(number));
  return {inside.start[request_.row_axis], inside.count[request_.row_axis]};
}

/// Copies the gathered chunks from the nth on that are plain and lie side by side, row by row through all of them: what
/// is written follows closely then. Returns how many those are.
std::size_t chunked_reader::pass::spread_side_by_side(std::size_t n, std::size_t count, const std::byte* stored) {
  const auto& grid = reader_.grid_;
  const auto at = grid.position(gathered_[n]);
  const auto first = grid.inside(at);
  if (!reader_.is_plain(reader_.index_[gathered_[n]], first)) return 0;
  std::size_t axis = grid.rank() - 1;  // along which chunks follow each other by number
  while (axis > 0 && grid.counts()[axis] == 1) --axis;
  const auto most = std::min<std::uint64_t>(count - n, grid.counts()[axis] - at[axis]);
  std::size_t several = 1;
  for (; several < most; ++several) {
    const auto next = gathered_[n + several];
    if (next != gathered_[n] + several) break;
    const auto inside = grid.inside(grid.position(next));
    if (inside.count != first.count || !reader_.is_plain(reader_.index_[next], inside)) break;
  }
  auto plan = plan_runs(first.count, first.rank, reader_.chunk_strides_, request_.strides, reader_.value_bytes_);
  add_loop(plan, several, reader_.chunk_bytes_, grid.chunk_shape()[axis] * request_.strides[axis]);
  copy_runs(plan, stored + reader_.member_offset_, request_.at(first.start));
  return several;
}

bool chunked_reader::pass::lies_inside(const chunk_entry& entry) const noexcept {
  return entry.address <= file_->bytes() && entry.bytes <= file_->bytes() - entry.address;
}

std::span<const std::byte> chunked_reader::pass::read_chunk(const chunk_entry& entry) {
  if (!lies_inside(entry)) past_the_end(entry);
  const auto stored = scratch_.stored(entry.address).first(entry.bytes);
  reads_.read_now(entry.address, stored);
  return stored;
}

void chunked_reader::pass::decode_to_request(std::uint64_t number, std::span<const std::byte> stored) {
  const auto inside = reader_.grid_.inside(reader_.grid_.position(number));
  const auto wanted = intersection(inside, request_.part);
  std::byte* out = request_.at(wanted.start);
  const auto plan =
      plan_runs(wanted.count, wanted.rank, reader_.chunk_strides_, request_.strides, reader_.value_bytes_);
  try {
    if (plan.loops == 0 && plan.run_bytes == reader_.chunk_bytes_) {
      decode(number, inside, stored, {out, reader_.chunk_bytes_});
    } else {
      const auto chunk = scratch_.decoded().first(reader_.chunk_bytes_);
      decode(number, inside, stored, chunk);
      copy_out(chunk.data(), inside, wanted);
    }
  } catch (const not_decodable& e) {
    read_by_library({wanted, request_.row_axis, out, request_.strides}, e);
  }
}

void chunked_reader::pass::decode_to_slot(std::uint64_t number, const box& inside, std::span<std::byte> chunk) {
  decode_gathered();  // its bytes would lie where the next read goes
  try {
    decode(number, inside, read_chunk(reader_.index_[number]), chunk);
  } catch (const not_decodable& e) {
    // Of a compound, the one member that is read.
    read_by_library({inside, request_.row_axis, chunk.data() + reader_.member_offset_, reader_.chunk_strides_}, e);
  }
}

void chunked_reader::pass::read_by_library(const read_request& request, const not_decodable& why) {
  try {
    reader_.library_.read(request, scratch_);
  } catch (const failure& e) {
    if (e.system != ENOTSUP || why.intact) throw;
    // The filter is known here, and decodes other chunks: nobody will read this one.
    throw damage(fmt::format("{}, and libhdf5 has no plugin to try; copy or write the file again", why.what()));
  }
}

void chunked_reader::pass::decode(std::uint64_t number, const box& inside, std::span<const std::byte> stored,
                                  std::span<std::byte> chunk) {
  const stopwatch watch(reader_.world_.count.decode_nanoseconds);
  reader_.filters_.decode(stored, reader_.mask_of(reader_.index_[number], inside), chunk, scratch_.workspace(),
                          reader_.world_.opening ? nullptr : reader_.world_.faults.get());
  reader_.world_.count.decoded_bytes.fetch_add(chunk.size(), std::memory_order_relaxed);
  reader_.world_.count.chunks_decoded.fetch_add(1, std::memory_order_relaxed);
}

void chunked_reader::pass::copy_out(const std::byte* chunk, const box& inside, const box& wanted) {
  chunk += reader_.member_offset_;
  for (std::size_t k = 0; k < wanted.rank; ++k)
    chunk += (wanted.start[k] - inside.start[k]) * reader_.chunk_strides_[k];
  copy_runs(plan_runs(wanted.count, wanted.rank, reader_.chunk_strides_, request_.strides, reader_.value_bytes_), chunk,
            request_.at(wanted.start));
}

}  // namespace penstock::io
