#include "rows_file.hpp"

#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

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

void write_values(const synthetic_task& task, std::uint64_t rows, std::uint64_t piece_rows, penstock::io::writer& out,
                  const std::stop_token& stop) {
  std::array<std::vector<std::byte>, 2> pieces;
  for (auto& piece : pieces) piece.resize(piece_rows * task.row_bytes());
  const auto part = [&](std::uint64_t first) {
    return std::span(pieces[first / piece_rows % 2]).first(std::min(piece_rows, rows - first) * task.row_bytes());
  };
  task.fill(0, part(0));
  for (std::uint64_t first = 0; first < rows && !stop.stop_requested(); first += piece_rows) {
    oneapi::tbb::task_group next;
    if (first + piece_rows < rows) next.run([&, then = first + piece_rows] { task.fill(then, part(then)); });
    try {
      out.write_rows("/x", first, part(first).size() / task.row_bytes(), part(first));
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

}  // namespace

bool write_rows_file(const synthetic_task& task, std::uint64_t rows, const penstock::io::create_options& storage,
                     const std::filesystem::path& target, const std::stop_token& stop) {
  penstock::io::writer out(target);
  out.create("/x", task.element, {rows, task.columns}, storage);
  out.create("/label", penstock::type::int32, {rows});
  if (rows > 0) {
    write_values(task, rows, rows_of_piece(task, rows, storage), out, stop);
    write_labels(task, rows, out, stop);
  }
  if (stop.stop_requested()) return false;
  out.commit();
  return true;
}

}  // namespace examples
