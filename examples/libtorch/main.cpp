// Trains a small convolutional network of libtorch's on HDF5 datasets of any size, which Penstock streams; one budget
// of GPU memory holds for both.

#include "../common/program.hpp"
#include "../common/signals.hpp"
#include "data.hpp"
#include "options.hpp"
#include "torch_device.hpp"
#include "training.hpp"

#include <penstock/bytes.hpp>
#include <penstock/pipeline/error.hpp>

#include <c10/util/Exception.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

namespace ps = penstock;

/// What torch may take of the GPU: what the pipelines leave of the budget.
std::size_t torch_share(std::size_t budget, std::size_t penstock_bytes) {
  constexpr std::size_t least = std::size_t{32} << 20;  // below, torch's own workspaces do not fit
  if (budget >= penstock_bytes + least) return budget - penstock_bytes;
  throw std::runtime_error("--device-memory " + ps::format_bytes(budget) + " is too little: Penstock's rows take " +
                           ps::format_bytes(penstock_bytes) + " of it (--rows-memory limits that), and torch " +
                           ps::format_bytes(least) + " at least");
}

class libtorch_program {
 public:
  libtorch_program(const examples::libtorch_options& o, const examples::libtorch_data& data, ps::gpu::device device)
      : options_(o),
        device_(device),
        where_(examples::torch_device(device)),
        shape_(data.row_shape, o.channels_last),
        training_(examples::open_batches(data.training, true, data, o, device)) {
    if (data.testing) testing_ = examples::open_batches(*data.testing, false, data, o, device);
    share_memory();
    torch::manual_seed(o.seed);
    network_ = examples::convolutional_network(shape_, static_cast<std::int64_t>(o.width),
                                               static_cast<std::int64_t>(data.classes));
    network_->to(where_);
  }

  void run(std::stop_token stop) {
    torch::optim::AdamW optimizer(network_->parameters(), torch::optim::AdamWOptions(options_.learning_rate));
    const examples::falling_rate rate{options_.learning_rate, options_.epochs, training_.batches_per_epoch()};
    // One run over all epochs: while the test set is looked at, rows of the next epoch are read already.
    const ps::pipeline::consume_options how{.stream = examples::current_stream(device_), .stop = stop};
    auto batches = training_.epochs(0, options_.epochs, how);
    for (std::uint64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      const auto trained = examples::train_epoch(network_, optimizer, rate, batches, shape_);
      std::optional<examples::pass_result> tested;
      if (testing_) {
        auto test_batches = testing_->epochs(epoch, 1, how);
        tested = examples::evaluate(network_, test_batches, testing_->batches_per_epoch(), shape_);
      }
      show(epoch, trained, tested);
    }
  }

  void report() {
    std::ostringstream text;
    text << training_.report();
    std::printf("\n%s", text.str().c_str());
    if (device_.is_cuda()) {
      const std::size_t most = examples::most_torch_bytes(device_);
      results_["memory"]["torch_most_bytes"] = most;
      std::printf("torch held %s at most, of %s\n", ps::format_bytes(most).c_str(),
                  ps::format_bytes(torch_bytes_).c_str());
    }
    if (!options_.json.empty()) examples::write_json(options_.json, results_);
    std::printf("%s accuracy %.4f\n", testing_ ? "test" : "training", accuracy_);
  }

 private:
  void share_memory() {
    std::size_t penstock_bytes = training_.plan().ledger.total(ps::gpu::memory_kind::device);
    if (testing_) penstock_bytes += testing_->plan().ledger.total(ps::gpu::memory_kind::device);
    results_["device"] = device_.name();
    results_["memory"]["penstock_bytes"] = penstock_bytes;
    std::printf("%s: rows take %s", device_.description().c_str(), ps::format_bytes(penstock_bytes).c_str());
    if (device_.is_cuda()) {
      torch_bytes_ = torch_share(options_.device_bytes, penstock_bytes);
      examples::cap_torch_memory(device_, torch_bytes_);
      results_["memory"]["torch_limit_bytes"] = torch_bytes_;
      std::printf(", torch may take %s", ps::format_bytes(torch_bytes_).c_str());
    }
    std::printf("\n");
  }

  void show(std::uint64_t epoch, const examples::pass_result& trained,
            const std::optional<examples::pass_result>& tested) {
    const double rate = static_cast<double>(trained.rows) / trained.seconds;
    std::printf("epoch %llu of %llu: loss %.4f, accuracy %.4f, %.0f rows/s", static_cast<unsigned long long>(epoch + 1),
                static_cast<unsigned long long>(options_.epochs), trained.loss, trained.accuracy, rate);
    nlohmann::json entry{{"loss", trained.loss}, {"accuracy", trained.accuracy}, {"rows_per_second", rate}};
    if (tested) {
      std::printf("; test loss %.4f, accuracy %.4f", tested->loss, tested->accuracy);
      entry["test_loss"] = tested->loss;
      entry["test_accuracy"] = tested->accuracy;
    }
    std::printf("\n");
    std::fflush(stdout);
    accuracy_ = tested ? tested->accuracy : trained.accuracy;
    results_["epochs"].push_back(entry);
    results_[tested ? "test_accuracy" : "training_accuracy"] = accuracy_;
  }

  const examples::libtorch_options& options_;
  ps::gpu::device device_;
  torch::Device where_;
  examples::image_shape shape_;
  ps::pipeline::pipeline training_;
  std::optional<ps::pipeline::pipeline> testing_;
  torch::nn::Sequential network_;
  std::size_t torch_bytes_ = 0;  ///< 0: without a limit, on the host
  double accuracy_ = 0;          ///< the last one of the test set, or of the training set where there is none
  nlohmann::json results_;
};

void train(const examples::libtorch_options& o, examples::stop_on_signal& signals) {
  const auto device = ps::gpu::device::parse(o.device);
  const examples::libtorch_data data(o);
  examples::check_output("--json", o.json, data.inputs());
  libtorch_program program(o, data, device);
  signals.begin();
  program.run(signals.token());
  program.report();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a small convolutional network of libtorch's on HDF5 datasets of any size, which Penstock streams. "
      "Batches "
      "are tensors without a copy, and one budget of GPU memory holds for both.",
      "penstock-libtorch");
  examples::libtorch_options o;
  examples::add_libtorch_options(app, o);
  return examples::run_program(app, argc, argv, [&] {
    examples::stop_on_signal signals("penstock-libtorch: stopped; nothing is kept");
    try {
      train(o, signals);
    } catch (const ps::pipeline::stopped&) {
      throw examples::interrupted(signals.signal(), "stopped; nothing is kept");
    } catch (const c10::OutOfMemoryError&) {
      throw std::runtime_error(
          "torch needs more memory than it may take: larger --device-memory, smaller --batch-rows");
    } catch (const c10::Error& e) {
      const std::string sentence = e.what_without_backtrace();  // what() adds a page of addresses
      throw std::runtime_error("libtorch: " + sentence.substr(0, sentence.find('\n')));
    }
  });
}
