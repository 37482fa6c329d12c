#include "rows_file.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "chunk_encoder.hpp"
#include "mark.hpp"

namespace examples {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{32} << 20;

/// Rows made together: whole chunks, and about piece_bytes.
std::uint64_t rows_of_piece(const synthetic_task& task, std::uint64_t rows,
                            const penstock::io::create_options& storage) {
  const std::uint64_t chunk_rows = storage.chunk_shape.empty() ? 1 : storage.chunk_shape[0];
  const auto chunks = std::max<std::uint64_t>(1, piece_bytes / (chunk_rows * task.row_bytes()));
  return std::min(rows, chunks * chunk_rows);
}

/// Rows of /x that are made, and compressed where the storage asks for it, on all threads, then written by one.
class piece {
 public:
  piece(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage)
      : task_(task), rows_(rows), storage_(storage), piece_rows_(rows_of_piece(task, rows, storage)) {
    if (compressed()) chunks_.resize((piece_rows_ + chunk_rows() - 1) / chunk_rows());
    values_.resize(compressed() ? chunks_.size() * chunk_rows() * task.row_bytes() : piece_rows_ * task.row_bytes());
  }

  std::uint64_t rows() const noexcept { return piece_rows_; }

  void make(std::uint64_t first) {
    first_ = first;
    made_ = std::min(piece_rows_, rows_ - first);
    const auto bytes = made_ * task_.row_bytes();
    task_.fill(first, std::span(values_).first(bytes));
    if (!compressed()) return;
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(bytes), values_.end(), std::byte{});
    const auto chunk_bytes = chunk_rows() * task_.row_bytes();
    oneapi::tbb::parallel_for(std::size_t{0}, (made_ + chunk_rows() - 1) / chunk_rows(), [&](std::size_t n) {
      chunks_[n] = encode_chunk(std::span(values_).subspan(n * chunk_bytes, chunk_bytes),
                                penstock::size_of(task_.element), storage_.shuffle, storage_.deflate_level);
    });
  }

  void write(penstock::io::writer& out) const {
    if (!compressed()) return out.write_rows("/x", first_, made_, std::span(values_).first(made_ * task_.row_bytes()));
    for (std::uint64_t row = 0; row < made_; row += chunk_rows()) {
      const encoded_chunk& chunk = chunks_[row / chunk_rows()];
      out.write_encoded_chunk("/x", first_ + row, chunk.skipped_filters, chunk.bytes);
    }
  }

 private:
  bool compressed() const noexcept { return storage_.deflate_level >= 0; }
  std::uint64_t chunk_rows() const noexcept { return storage_.chunk_shape[0]; }

  const synthetic_task& task_;
  std::uint64_t rows_;
  const penstock::io::create_options& storage_;
  std::uint64_t piece_rows_;
  std::uint64_t first_ = 0;
  std::uint64_t made_ = 0;
  std::vector<std::byte> values_;
  std::vector<encoded_chunk> chunks_;
};

/// Makes one piece while the one before is written.
void write_values(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage,
                  penstock::io::writer& out, const std::stop_token& stop) {
  std::array<piece, 2> pieces{piece(task, rows, storage), piece(task, rows, storage)};
  const std::uint64_t piece_rows = pieces[0].rows();
  const auto at = [&](std::uint64_t first) -> piece& { return pieces[first / piece_rows % 2]; };
  at(0).make(0);
  for (std::uint64_t first = 0; first < rows && !stop.stop_requested(); first += piece_rows) {
    oneapi::tbb::task_group next;
    if (first + piece_rows < rows) next.run([&, then = first + piece_rows] { at(then).make(then); });
    try {
      at(first).write(out);
    } catch (...) {
      next.cancel();
      next.wait();
      throw;
    }
    next.wait();
  }
}

void write_labels(const synthetic_task& task, std::uint64_t rows, penstock::io::writer& out,
                  const std::stop_token& stop) {
  std::vector<std::int32_t> labels(std::min<std::uint64_t>(rows, std::uint64_t{1} << 20));
  for (std::uint64_t first = 0; first < rows && !stop.stop_requested(); first += labels.size()) {
    const auto part = std::span(labels).first(std::min<std::uint64_t>(labels.size(), rows - first));
    for (std::uint64_t row = 0; row < part.size(); ++row) part[row] = task.label(first + row);
    out.write_rows("/label", first, part.size(), std::as_bytes(part));
  }
}

/// Rows that are not compressed have a size that is known before they are written.
void check_space(const std::filesystem::path& target, const synthetic_task& task, std::uint64_t rows,
                 const penstock::io::create_options& storage) {
  const double bytes = static_cast<double>(rows) * static_cast<double>(task.row_bytes());
  std::error_code unknown;
  const auto space = std::filesystem::space(std::filesystem::absolute(target).parent_path(), unknown);
  if (storage.deflate_level >= 0 || unknown || bytes <= static_cast<double>(space.available)) return;
  throw std::runtime_error(fmt::format("{}: {} rows take {:.3g} bytes, and {:.3g} are free there; ask for fewer",
                                       target.string(), rows, bytes, static_cast<double>(space.available)));
}

}  // namespace

bool write_rows_file(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage,
                     const std::filesystem::path& target, const std::stop_token& stop) {
  check_space(target, task, rows, storage);
  penstock::io::writer out(target);
  out.attribute("/", mark, "rows");
  out.create("/x", task.element, {rows, task.columns}, storage);
  out.create("/label", penstock::type::int32, {rows});
  if (rows > 0) {
    write_values(task, rows, storage, out, stop);
    write_labels(task, rows, out, stop);
  }
  if (stop.stop_requested()) return false;
  out.commit();
  return true;
}

}  // namespace examples
