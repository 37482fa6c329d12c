#pragma once

#include "network.hpp"
#include "tensors.hpp"

#include <penstock/pipeline/pipeline.hpp>

#include <torch/optim/optimizer.h>

#include <cstdint>

namespace examples {

struct pass_result {
  std::uint64_t rows = 0;
  double loss = 0;      ///< mean over the rows
  double accuracy = 0;  ///< of the predictions made on the way
  double seconds = 0;   ///< to the end of the device's work
};

/// A learning rate that falls from `first` to 0 over all steps of a run.
struct falling_rate {
  double first = 1e-3;
  std::uint64_t epochs = 1, batches = 1;
  double of(std::uint64_t epoch, std::uint64_t batch) const {
    return first * (1 - static_cast<double>(epoch * batches + batch) / static_cast<double>(epochs * batches));
  }
};

/// One epoch of training: the next rate.batches batches of a run, which has torch's current stream. Waits for the
/// device in its end. Throws std::runtime_error where the loss is not finite.
pass_result train_epoch(torch::nn::Sequential& network, torch::optim::Optimizer& optimizer, const falling_rate& rate,
                        penstock::pipeline::epoch_range& run, const image_shape& shape);

/// The network's loss and accuracy on one epoch of a run. Waits for the device in its end. Throws std::runtime_error
/// where the loss is not finite.
pass_result evaluate(torch::nn::Sequential& network, penstock::pipeline::epoch_range& run, std::uint64_t batches,
                     const image_shape& shape);

}  // namespace examples
