#pragma once

#include "tensors.hpp"

#include <torch/nn/modules/container/sequential.h>

#include <cstdint>

namespace examples {

/// Two convolutions of 3 x 3 with pooling, and two dense layers: [rows, channels, height, width] to [rows, classes].
torch::nn::Sequential convolutional_network(const image_shape& shape, std::int64_t width, std::int64_t classes);

}  // namespace examples
