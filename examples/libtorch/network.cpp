#include "network.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

namespace examples {

namespace nn = torch::nn;

nn::Sequential convolutional_network(const image_shape& shape, std::int64_t width, std::int64_t classes) {
  const auto convolution = [](std::int64_t from, std::int64_t to) {
    return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1));
  };
  const auto pooling = [] { return nn::MaxPool2d(nn::MaxPool2dOptions(2).ceil_mode(true)); };
  const auto pooled = [](std::int64_t extent) { return (extent + 1) / 2; };
  const std::int64_t halves = pooled(shape.height) * pooled(shape.width);
  const std::int64_t places = pooled(pooled(shape.height)) * pooled(pooled(shape.width));
  constexpr std::int64_t hidden = 128;
  // Images of one value are not normalised: a last batch of one row would have no variance, which torch refuses.
  const auto norm = [](std::int64_t channels, std::int64_t values) {
    return values > 1 ? nn::AnyModule(nn::BatchNorm2d(channels)) : nn::AnyModule(nn::Identity());
  };
  // Pooled before the normalisation and the ReLU, which have a quarter of the work then.
  return nn::Sequential(convolution(shape.channels, width), pooling(), norm(width, halves), nn::ReLU(),  //
                        convolution(width, 2 * width), pooling(), norm(2 * width, places), nn::ReLU(),   //
                        nn::Flatten(), nn::Linear(2 * width * places, hidden), nn::ReLU(), nn::Linear(hidden, classes));
}

}  // namespace examples
