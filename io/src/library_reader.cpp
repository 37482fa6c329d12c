#include "library_reader.hpp"

#include "ask_for_memory.hpp"
#include "read_driver.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;   // the guard is held no longer than such a piece takes
constexpr std::size_t spread_bytes = std::size_t{1} << 20;  // of pieces that are copied on
constexpr std::size_t default_cache_bytes = std::size_t{1} << 20;  // libhdf5's own
constexpr std::size_t largest_cache_bytes = std::size_t{64} << 20;

/// Chunks across one row of chunks: with them cached, reading along the rows decodes each chunk once.
std::size_t cache_bytes_for(const dataset_description& d) {
  if (d.info.layout != layout::chunked) return 0;
  std::uint64_t across = 1;
  for (std::size_t k = 1; k < d.rank; ++k)
    if (__builtin_mul_overflow(across, (d.info.shape[k] - 1) / d.info.chunk_shape[k] + 1, &across))
      return largest_cache_bytes;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(across, chunk_bytes(d), &bytes)) return largest_cache_bytes;
  return std::clamp(bytes, static_cast<std::uint64_t>(default_cache_bytes),
                    static_cast<std::uint64_t>(largest_cache_bytes));
}

/// Says why H5Dread failed. What is not known to have another cause is damage.
[[noreturn]] void read_failed(const dataset_description& d) {
  const int system = take_driver_error();
  const auto cause = library_cause_of_failure();
  const auto messages = library_messages();
  for (const auto& f : d.info.filters)
    if (cause != library_cause::memory && H5Zfilter_avail(f.id) <= 0)
      throw failure(
          fmt::format("it needs filter {} ({}), which libhdf5 has no plugin for; install one and set HDF5_PLUGIN_PATH",
                      f.id, f.name),
          ENOTSUP, messages);
  throw_unread(system, cause, messages);
}

}  // namespace

void library_read(hid_t dataset, const dataset_description& d, const box& part, std::byte* out) {
  // libhdf5 leaves memory as it is where nothing is stored and fill values are never written.
  std::memset(out, 0, part.values() * d.value.bytes);
  const library_guard guard;
  // Told at once: every call into libhdf5, closes too, empties its error stack.
  const auto read = [&](hid_t here, hid_t there) {
    take_driver_error();
    if (H5Dread(dataset, d.value.memory.native(), here, there, H5P_DEFAULT, out) < 0) read_failed(d);
    refuse_unopened_sources();
  };
  if (d.rank == 0) {
    read(H5S_ALL, H5S_ALL);
  } else {
    std::array<hsize_t, max_rank> start{}, count{};
    std::copy_n(part.start.begin(), part.rank, start.begin());
    std::copy_n(part.count.begin(), part.rank, count.begin());
    const space_id here(
        checked(H5Screate_simple(static_cast<int>(part.rank), count.data(), nullptr), "a memory space cannot be made"));
    const space_id there(checked(H5Dget_space(dataset), "its shape cannot be read"));
    checked(H5Sselect_hyperslab(there.native(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
            "its rows cannot be selected");
    read(here.native(), there.native());
  }
}

library_reader::library_reader(read_world& world, std::size_t file, std::size_t number, shared_description description,
                               std::uint64_t file_bytes)
    : world_(world),
      file_(file),
      number_(number),
      description_(std::move(description)),
      cache_bytes_(cache_bytes_for(*description_)),
      check_bytes_(chunk_check::half_bytes(*description_, file_bytes)),
      process_(::getpid()) {}

reader_memory library_reader::memory(std::size_t) const {
  reader_memory m;
  m.scratch.decoded_bytes = std::max(spread_bytes, description_->value.bytes);
  m.library_bytes = cache_bytes_;
  m.library_datasets = 1;
  m.check_bytes = check_bytes_;
  return m;
}

std::shared_ptr<library_dataset> library_reader::open() const {
  if (::getpid() != process_)
    throw failure("it was opened before this process was forked, and libhdf5 cannot follow; open it after the fork");
  return world_.library.acquire(number_, [this] {
    const auto& known = world_.files[file_];
    if (probe(known.path, world_.faults, world_.faults) != known.identity)
      throw failure("it was changed or replaced while it was being read; open it anew", ESTALE);
    ask_for_memory(world_.faults, memory_items::library, cache_bytes_);
    const library_guard guard;
    auto open = std::make_shared<library_dataset>();
    open->file = open_hdf5(known.path, world_.faults);
    const property_id access(checked(H5Pcreate(H5P_DATASET_ACCESS), "dataset access properties cannot be made"));
    if (cache_bytes_ > 0)
      checked(H5Pset_chunk_cache(access.native(), 12421, cache_bytes_, 1.0), "its chunk cache cannot be set");
    take_driver_error();
    open->dataset.reset(H5Dopen2(open->file.native(), description_->object.c_str(), access.native()));
    if (!open->dataset) {
      const int system = take_driver_error();
      throw failure("it cannot be opened again", system, library_messages());
    }
    open->check = std::make_unique<chunk_check>(*description_, world_.checks);
    if (description_->info.layout == layout::virtual_dataset)
      open->sources = std::make_unique<source_check>(open->dataset.native(), world_.checks, world_.faults);
    return open;
  });
}

void library_reader::read(const read_request& request, scratch& s) const {
  const auto dataset = open();  // outlives the guards below: giving it back takes another lock
  const auto packed = packed_strides(request.part.count, request.part.rank, description_->value.bytes);
  const auto plan =
      plan_runs(request.part.count, request.part.rank, packed, request.strides, description_->value.bytes);
  try {
    dataset->check->look(dataset->dataset.native(), request.part, request.row_axis);
    if (dataset->sources) dataset->sources->look(request.part);
    if (plan.loops == 0)
      read_dense(*dataset, request.part, request.out);
    else
      read_spread(*dataset, request.part, request, s);
  } catch (failure& e) {
    if (e.damaged && e.lost.count == 0) e.lost = lost_with(*dataset, request);
    throw;
  }
}

/// All that was asked for, where the rows lie in the same chunks with filters, and what else lies in them, where that
/// is known. None otherwise.
lost_rows library_reader::lost_with(const library_dataset& open, const read_request& request) const {
  const auto& info = description_->info;
  if (description_->rank == 0) return {};
  const auto axis = request.row_axis;
  const auto first = request.part.start[axis], count = request.part.count[axis];
  if (open.sources) try {
      return open.sources->rows_show_same_chunks(request.part, axis) ? lost_rows{first, count} : lost_rows{};
    } catch (const failure&) {
      return {};
    }
  if (info.filters.empty() || info.chunk_shape.empty()) return {};
  const auto chunk = info.chunk_shape[axis], begin = first / chunk * chunk;
  if (first + count - begin > chunk) return {};
  return {begin, std::min(chunk, info.shape[axis] - begin)};
}

std::uint64_t library_reader::cut_point(const box& part, std::size_t axis, bool within_chunks) const noexcept {
  const auto middle = part.start[axis] + part.count[axis] / 2;
  if (description_->info.chunk_shape.empty()) return middle;
  const auto chunk = description_->info.chunk_shape[axis];
  const auto aligned = middle / chunk * chunk;
  if (aligned > part.start[axis]) return aligned;
  if (aligned + chunk < part.start[axis] + part.count[axis]) return aligned + chunk;
  return within_chunks ? middle : 0;
}

std::size_t library_reader::axis_to_cut(const box& part, bool within_chunks) const noexcept {
  std::size_t axis = 0;
  while (axis < part.rank && (part.count[axis] < 2 || cut_point(part, axis, within_chunks) == 0)) ++axis;
  return axis;
}

void library_reader::read_dense(const library_dataset& open, const box& part, std::byte* out) const {
  const auto bytes = part.values() * description_->value.bytes;
  // Only the first axis longer than 1 can be cut into parts that lie one after the other; never within a chunk.
  std::size_t axis = 0;
  while (axis < part.rank && part.count[axis] == 1) ++axis;
  if (bytes <= piece_bytes || axis == part.rank || cut_point(part, axis, false) == 0) return read_part(open, part, out);
  auto first = part, second = part;
  second.start[axis] = cut_point(part, axis, false);
  first.count[axis] = second.start[axis] - part.start[axis];
  second.count[axis] = part.count[axis] - first.count[axis];
  read_dense(open, first, out);
  read_dense(open, second, out + first.values() * description_->value.bytes);
}

void library_reader::read_spread(const library_dataset& open, const box& part, const read_request& request,
                                 scratch& s) const {
  const auto bytes = part.values() * description_->value.bytes;
  if (bytes > s.decoded().size()) {
    auto axis = axis_to_cut(part, false);
    if (axis == part.rank) axis = axis_to_cut(part, true);
    auto first = part, second = part;
    const auto aligned = cut_point(part, axis, false);
    second.start[axis] = aligned ? aligned : cut_point(part, axis, true);
    first.count[axis] = second.start[axis] - part.start[axis];
    second.count[axis] = part.count[axis] - first.count[axis];
    read_spread(open, first, request, s);
    return read_spread(open, second, request, s);
  }
  read_part(open, part, s.decoded().data());
  const auto packed = packed_strides(part.count, part.rank, description_->value.bytes);
  copy_runs(plan_runs(part.count, part.rank, packed, request.strides, description_->value.bytes), s.decoded().data(),
            request.at(part.start));
}

void library_reader::read_part(const library_dataset& open, const box& part, std::byte* out) const {
  const stopwatch watch(world_.count.lock_nanoseconds);
  library_read(open.dataset.native(), *description_, part, out);
  world_.count.locked_bytes.fetch_add(part.values() * description_->value.bytes, std::memory_order_relaxed);
}

}  // namespace penstock::io
