#include <penstock/handle.hpp>
#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "checksum.hpp"
#include "measure.hpp"
#include "plain_reader.hpp"

namespace examples {
namespace {

namespace io = penstock::io;

constexpr std::size_t least_piece_bytes = std::size_t{1} << 20;

struct descriptor_traits {
  using native_type = int;
  static native_type empty() noexcept { return -1; }
  static void release(native_type descriptor) noexcept { ::close(descriptor); }
};

[[noreturn]] void refuse(const io::location& where, const char* why) {
  throw std::runtime_error(fmt::format("{}:{}: {}; measure without --pread", where.file.string(), where.dataset, why));
}

/// A dataset whose bytes lie one after another in its file.
struct stored_part {
  penstock::handle<descriptor_traits> descriptor;
  std::uint64_t offset = 0;
  std::uint64_t rows = 0;
};

/// Numbers of this machine's byte order, bytes, and texts that are padded with zeros: io swaps and pads all others.
bool is_stored_as_it_is_given(hid_t dataset) {
  hdf5_handle<H5Tclose> type(H5Dget_type(dataset));
  while (type && H5Tget_class(type.native()) == H5T_ARRAY) type.reset(H5Tget_super(type.native()));
  if (!type) return false;
  if (H5Tget_class(type.native()) == H5T_STRING) return H5Tget_strpad(type.native()) == H5T_STR_NULLPAD;
  const hdf5_handle<H5Tclose> native(H5Tget_native_type(type.native(), H5T_DIR_DEFAULT));
  return native && (H5Tget_size(type.native()) == 1 || H5Tget_order(type.native()) == H5Tget_order(native.native()));
}

stored_part open_part(const io::row_reader::segment& segment) {
  const io::location& where = segment.where;
  if (segment.info.layout != io::layout::contiguous || segment.info.access != io::access::direct)
    refuse(where, "--pread reads bytes that lie one after another in their file, and these are stored otherwise");
  const hdf5_handle<H5Fclose> file(H5Fopen(where.file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const hdf5_handle<H5Dclose> dataset(H5Dopen2(file.native(), where.dataset.c_str(), H5P_DEFAULT));
  if (dataset && !is_stored_as_it_is_given(dataset.native()))
    refuse(where, "--pread reads bytes as they are stored, and these are converted");
  const haddr_t offset = dataset ? H5Dget_offset(dataset.native()) : HADDR_UNDEF;
  if (offset == HADDR_UNDEF) refuse(where, "its bytes are not in this file");
  stored_part part{.descriptor = {}, .offset = offset, .rows = segment.rows};
  part.descriptor.reset(::open(where.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!part.descriptor) refuse(where, "it could not be opened");
  return part;
}

/// Pieces of all parts, counted through; any thread takes the next one, and sums up what it read. A piece is a batch,
/// which is what a consumer has in memory at once, or 1 MiB where that is more: shorter reads cost more calls.
class summing_reader {
 public:
  summing_reader(const std::vector<stored_part>& parts, std::size_t row_bytes, std::size_t batch_rows)
      : parts_(parts), row_bytes_(row_bytes), piece_rows_(std::max(batch_rows, least_piece_bytes / row_bytes)) {}

  void run(std::span<std::byte> buffer) noexcept {
    while (!failed_) {
      std::uint64_t piece = next_.fetch_add(1);
      const stored_part* part = parts_.data();
      for (std::uint64_t here = 0; part != parts_.data() + parts_.size() && piece >= (here = pieces(*part)); ++part)
        piece -= here;
      if (part == parts_.data() + parts_.size()) return;
      const std::uint64_t first = piece * piece_rows_, rows = std::min<std::uint64_t>(piece_rows_, part->rows - first);
      const std::size_t bytes = rows * row_bytes_;
      const auto count = ::pread(part->descriptor.native(), buffer.data(), bytes,
                                 static_cast<::off_t>(part->offset + first * row_bytes_));
      if (count != static_cast<::ssize_t>(bytes)) failed_ = true;
      sum_ += checksum_here({buffer.data(), rows, row_bytes_});
    }
  }
  std::size_t buffer_bytes() const noexcept { return piece_rows_ * row_bytes_; }
  std::uint64_t sum() const {
    if (failed_) throw std::runtime_error("--pread could not read all bytes of a file");
    return sum_;
  }

 private:
  std::uint64_t pieces(const stored_part& part) const noexcept { return (part.rows + piece_rows_ - 1) / piece_rows_; }

  const std::vector<stored_part>& parts_;
  const std::size_t row_bytes_, piece_rows_;
  std::atomic<std::uint64_t> next_{0}, sum_{0};
  std::atomic<bool> failed_{false};
};

std::vector<stored_part> open_parts(const stream_request& request, const io::row_reader& rows) {
  if (!request.device.is_host())
    throw std::invalid_argument("--pread is what the host device is measured beside; take --device host");
  std::vector<stored_part> parts;
  for (const auto& segment : rows.segments()) parts.push_back(open_part(segment));
  return parts;
}

}  // namespace

void check_pread(const stream_request& request) {
  open_parts(request, io::row_reader(io::datasets(request.file, request.dataset)));
}

figure measure_pread(const stream_request& request, std::size_t batch_rows, const timing& how) {
  const io::row_reader rows(io::datasets(request.file, request.dataset));
  const auto parts = open_parts(request, rows);
  const std::size_t threads = request.transport.threads != 0 ? request.transport.threads : penstock::gpu::processors();
  std::vector<std::byte> memory(threads * summing_reader(parts, rows.row_bytes(), batch_rows).buffer_bytes());
  figure timed = time_epochs(how, rows.rows(), rows.row_bytes(), [&](std::uint64_t epochs) {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t sum = 0;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      summing_reader reader(parts, rows.row_bytes(), batch_rows);
      {
        std::vector<std::jthread> running;
        for (std::size_t n = 0; n < threads; ++n)
          running.emplace_back([&, buffer = std::span(memory).subspan(n * reader.buffer_bytes(),
                                                                      reader.buffer_bytes())] { reader.run(buffer); });
      }
      sum += reader.sum();
    }
    return pass{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), sum};
  });
  timed.reader = "pread";
  timed.stored_bytes_per_second = timed.bytes_per_second;
  timed.dataset = request.dataset;
  timed.order = "sequential";
  timed.batch_rows = batch_rows;
  return timed;
}

}  // namespace examples
