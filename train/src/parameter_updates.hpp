#pragma once

#include "network.hpp"
#include "offloaded_moments.hpp"
#include "optimizer_step.hpp"
#include "stage_memory.hpp"

#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::train {

/// The optimizer of a stage on all its parameters, with its moments: on the device, or in pinned memory, from where
/// they pass through the device piece by piece.
template <class S>
class parameter_updates {
 public:
  using T = arithmetic<S>;

  /// The network is bound, and stays where it is.
  void bind(gpu::stream_ref stream, const stage_options& options, const gpu::memory& memory, const network<S>& model,
            const step_state* state) {
    const std::size_t kept = moments(options.optimizer);
    const auto kind = options.offload.optimizer ? gpu::memory_kind::pinned : gpu::memory_kind::device;
    const auto at = [&](const char* name, gpu::memory_kind where) {
      return reinterpret_cast<T*>(memory.at(where, name).data());
    };
    if (kept > 0) first_ = at(stage_items::first_moment, kind);
    if (kept > 1) second_ = at(stage_items::second_moment, kind);
    parameters_ = model.parameters();
    optimize_ = [stream, state, optimizer = options.optimizer, &model](std::size_t first, std::size_t count, T* m,
                                                                       T* v) {
      S* const rounded = model.rounded_data() != nullptr ? model.rounded_data() + first : nullptr;
      optimizer_step<S, T>(stream, optimizer, state,
                           {count, model.parameter_data() + first, model.gradient_data() + first, m, v, rounded});
    };
    if (kept == 0 || !options.offload.optimizer) return;
    std::vector<T*> arrays{first_};
    if (kept > 1) arrays.push_back(second_);
    offloaded_.emplace(stream, moment_pieces(options, parameters_), std::move(arrays),
                       at(stage_items::moment_ring, gpu::memory_kind::device));
  }

  /// Copies of offloaded moments are asked for one by one, at each update.
  bool offloads() const noexcept { return offloaded_.has_value(); }

  /// After begin_update(). Does not block on CUDA.
  void run() {
    if (offloaded_)
      offloaded_->update(std::cref(optimize_));
    else
      optimize_(0, parameters_, first_, second_);
  }

  /// Sets the moments to 0.
  void clear(gpu::stream_ref stream) {
    const std::size_t bytes = parameters_ * sizeof(T);
    for (T* const each : {first_, second_}) {
      if (each == nullptr) continue;
      if (offloaded_)
        std::memset(each, 0, bytes);
      else
        gpu::fill(stream, each, 0, bytes);
    }
  }

  void list(const network<S>& model, std::vector<state_item>& to) const {
    if (first_ != nullptr) list_parameters(model, "optimizer/first_moment", first_, to);
    if (second_ != nullptr) list_parameters(model, "optimizer/second_moment", second_, to);
  }

 private:
  std::size_t parameters_ = 0;
  T* first_ = nullptr;
  T* second_ = nullptr;
  typename offloaded_moments<T>::work optimize_;  // on a range of the parameters
  std::optional<offloaded_moments<T>> offloaded_;
};

}  // namespace penstock::train
