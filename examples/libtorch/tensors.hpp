#pragma once

#include <penstock/pipeline/dlpack.hpp>

#include <torch/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace examples {

/// A field of a batch as a tensor of torch's, without a copy: the tensor stands on the batch's rows, and keeps them
/// held as long as it, or any view of it, lives. To be used on batch.stream().
torch::Tensor tensor_of(const penstock::pipeline::shared_batch& batch, std::string_view field);

/// Height, width and channels of the images that rows are.
struct image_shape {
  std::int64_t channels = 1, height = 1, width = 1;
  bool channels_last = false;

  /// [width] is a line, [height, width] an image of one channel. Throws std::invalid_argument for other shapes.
  image_shape(const std::vector<std::uint64_t>& row_shape, bool channels_last);
  /// A view of rows as [rows, channels, height, width].
  torch::Tensor images(const torch::Tensor& rows) const;
};

}  // namespace examples
