#include "training.hpp"

#include <torch/nn/functional/loss.h>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace examples {
namespace {

namespace ps = penstock;

/// Sums that stay on the device, so that no step waits for it.
class device_sums {
 public:
  void add(const torch::Tensor& loss, const torch::Tensor& logits, const torch::Tensor& labels) {
    const auto rows = labels.size(0);
    const auto loss_of_rows = loss.detach().to(torch::kFloat64) * static_cast<double>(rows);
    const auto right = logits.detach().argmax(1).eq(labels).sum();
    loss_ = rows_ == 0 ? loss_of_rows : loss_ + loss_of_rows;
    right_ = rows_ == 0 ? right : right_ + right;
    rows_ += static_cast<std::uint64_t>(rows);
  }

  /// Waits for the device. Throws std::runtime_error where the loss is not finite.
  pass_result result(std::chrono::steady_clock::time_point since) const {
    if (rows_ == 0) return {};
    const auto rows = static_cast<double>(rows_);
    pass_result done{.rows = rows_,
                     .loss = loss_.item<double>() / rows,
                     .accuracy = static_cast<double>(right_.item<std::int64_t>()) / rows};
    done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
    if (!std::isfinite(done.loss))
      throw std::runtime_error(
          "the loss is not finite: the inputs hold NaN or infinity, are large (--scale), or steps are "
          "(--learning-rate)");
    return done;
  }

 private:
  torch::Tensor loss_, right_;
  std::uint64_t rows_ = 0;
};

}  // namespace

pass_result train_epoch(torch::nn::Sequential& network, torch::optim::Optimizer& optimizer, const falling_rate& rate,
                        ps::pipeline::epoch_range& run, const image_shape& shape) {
  const auto since = std::chrono::steady_clock::now();
  network->train();
  device_sums sums;
  for (std::uint64_t n = 0; n < rate.batches; ++n) {
    // The rows are lent: batch and tensors share them, and give them back when the last of them is gone, in the order
    // of torch's stream. Here that is the end of this block.
    const ps::pipeline::shared_batch batch(run.next());
    const auto images = shape.images(tensor_of(batch, "x"));
    const auto labels = tensor_of(batch, "y").flatten();
    optimizer.zero_grad();
    const auto logits = network->forward(images);
    const auto loss = torch::nn::functional::cross_entropy(logits, labels);
    loss.backward();
    for (auto& group : optimizer.param_groups())
      group.options().set_lr(rate.of(batch.rows().epoch(), batch.rows().index()));
    optimizer.step();
    sums.add(loss, logits, labels);
  }
  return sums.result(since);
}

pass_result evaluate(torch::nn::Sequential& network, ps::pipeline::epoch_range& run, std::uint64_t batches,
                     const image_shape& shape) {
  const auto since = std::chrono::steady_clock::now();
  const torch::NoGradGuard no_gradients;
  network->eval();
  device_sums sums;
  for (std::uint64_t n = 0; n < batches; ++n) {
    const ps::pipeline::shared_batch batch(run.next());
    const auto labels = tensor_of(batch, "y").flatten();
    const auto logits = network->forward(shape.images(tensor_of(batch, "x")));
    sums.add(torch::nn::functional::cross_entropy(logits, labels), logits, labels);
  }
  return sums.result(since);
}

}  // namespace examples
