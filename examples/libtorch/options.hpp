#pragma once

#include <penstock/bytes.hpp>
#include <penstock/gpu/ledger.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// The command line of penstock-libtorch.
struct libtorch_options {
  std::vector<std::string> files;
  std::string x, y, test_x, test_y;  ///< empty: Fashion-MNIST's datasets
  std::optional<double> scale;       ///< of the inputs; none: 1/255 for uint8, else 1
  bool channels_last = false;        ///< rows are [height, width, channels]
  std::uint64_t classes = 0;         ///< 0: one more than the largest label
  std::size_t batch_rows = 128;
  std::uint64_t epochs = 5;
  std::uint64_t width = 16;  ///< channels of the first convolution
  double learning_rate = 2e-3;
  std::uint64_t seed = 1;
  std::string device = "auto";
  std::size_t device_bytes = std::size_t{1} << 30;  ///< for Penstock and torch together
  /// What each of Penstock's two pipelines may take; of the budget of device memory, on a GPU.
  penstock::gpu::budget pipeline{.device_bytes = std::size_t{64} << 20, .pinned_bytes = std::size_t{64} << 20};
  std::size_t threads = 0;
  std::string json;
};

void add_libtorch_options(CLI::App& app, libtorch_options& o);

}  // namespace examples
