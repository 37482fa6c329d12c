#include "fashion_mnist.hpp"

#include <penstock/io/writer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "idx_file.hpp"
#include "mark.hpp"

namespace examples {
namespace {

constexpr std::uint64_t chunk_rows = 512;  // 392 KiB of images

void copy_dataset(const std::filesystem::path& idx, penstock::io::writer& out, const std::string& dataset,
                  const std::stop_token& stop) {
  idx_file in(idx);
  const auto& shape = in.shape();
  auto chunk = shape;
  chunk[0] = std::min(chunk_rows, shape[0]);
  out.create(dataset, penstock::type::uint8, shape, {.chunk_shape = chunk, .deflate_level = 4});

  const auto row_bytes = std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1}, std::multiplies{});
  std::vector<std::byte> piece(chunk[0] * row_bytes);
  for (std::uint64_t row = 0; row < shape[0] && !stop.stop_requested(); row += chunk[0]) {
    const auto rows = std::min(chunk[0], shape[0] - row);
    const auto bytes = std::span(piece).first(rows * row_bytes);
    in.read(bytes);
    out.write_rows(dataset, row, rows, bytes);
  }
}

// In the order in which they are read, each with its dataset.
constexpr std::array parts{
    std::pair{"train-images-idx3-ubyte.gz", "/train/images"}, std::pair{"train-labels-idx1-ubyte.gz", "/train/labels"},
    std::pair{"t10k-images-idx3-ubyte.gz", "/test/images"}, std::pair{"t10k-labels-idx1-ubyte.gz", "/test/labels"}};

}  // namespace

input_files fashion_mnist_files(const std::filesystem::path& source) {
  input_files files;
  for (const auto& [name, dataset] : parts) files.add(source / name);
  return files;
}

bool write_fashion_mnist(const std::filesystem::path& source, const std::filesystem::path& target,
                         const std::stop_token& stop) {
  penstock::io::writer out(target);
  out.attribute("/", mark, "fashion-mnist");
  for (const auto& [name, dataset] : parts) copy_dataset(source / name, out, dataset, stop);
  if (stop.stop_requested()) return false;
  out.commit();
  return true;
}

}  // namespace examples
