#include "backend.hpp"

#include "../transitions.hpp"
#include "blas_buffers.hpp"
#include "products.hpp"
#include "row_work.hpp"

#include <penstock/gpu/device.hpp>
#include <penstock/train/stage.hpp>

#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace penstock::train::host {
namespace {

template <class S>
class host_backend final : public backend<S> {
 public:
  using T = arithmetic<S>;

  explicit host_backend(std::size_t threads) : arena_(static_cast<int>(computing_threads(threads))) {
    use_single_threaded_blas();
    take_blas_buffers(static_cast<std::size_t>(arena_.max_concurrency()));
  }

  void run(const std::function<void()>& work) override { arena_.execute(work); }
  void replay(std::size_t, const intake<S>& first, const std::function<void()>& work) override {
    arena_.execute([&] {
      take(first);
      work();
    });
  }

  void multiply(const product& what, const S* a, const S* b, S* c, const S* bias) override {
    host::multiply(what, a, b, c, bias);
  }
  void multiply_gradient(const product& what, const S* a, const S* b, T* c, T*) override {
    host::multiply(what, a, b, c, static_cast<const T*>(nullptr));
  }
  void take(const intake<S>& what) override { host::take(what); }
  void observe(const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments,
               step_state* state) override {
    host::observe(rows, columns, moments, *state);
  }
  void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy, T* bias_gradient,
                           bool accumulate) override {
    host::activation_gradient(kind, rows, columns, y, dy, bias_gradient, accumulate);
  }
  void add_scores(const row_score<T>* scores, bool gradient, step_state* state) override {
    host::add_scores(scores, gradient, *state);
  }
  void join() override {}
  std::string algorithms() const override { return products_of_host(); }
  std::string set_algorithms(const std::string& chosen) override {
    const std::string here = products_of_host(), there = chosen.substr(0, chosen.find('\n'));
    if (there.empty() || there == here) return {};
    return "products are made by " + here + ", and were by " + there + ", which adds in another order";
  }
  void square_gradients(std::size_t count, const T* gradients, double* piece_sums, step_state* state) override {
    host::square_gradients(count, gradients, piece_sums, *state);
  }
  void begin_update(const update_rule& rule, step_state* state, bool) override { apply_begin(rule, *state); }
  void discard(step_state* state) override { apply_discard(*state); }
  void reset(const metrics& start, bool forgive, step_state* state) override { apply_reset(start, forgive, *state); }

 private:
  tbb::task_arena arena_;
};

}  // namespace

std::size_t computing_threads(std::size_t asked, std::size_t processors, std::size_t workers) noexcept {
  const std::size_t wanted = asked != 0 ? asked : std::min(processors, most_default_threads);
  return std::max<std::size_t>(std::min(wanted, workers), 1);
}

std::size_t computing_threads(std::size_t asked) {
  return computing_threads(asked, gpu::processors(), static_cast<std::size_t>(tbb::info::default_concurrency()));
}

template <class S>
std::unique_ptr<backend<S>> make_backend(std::size_t threads) {
  return std::make_unique<host_backend<S>>(threads);
}
template std::unique_ptr<backend<float>> make_backend(std::size_t);
template std::unique_ptr<backend<double>> make_backend(std::size_t);
template std::unique_ptr<backend<bfloat16>> make_backend(std::size_t);
template std::unique_ptr<backend<float16>> make_backend(std::size_t);

}  // namespace penstock::train::host
