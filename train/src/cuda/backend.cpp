#include "../backend.hpp"

#include "../host/backend.hpp"
#include "check.hpp"
#include "column_sums.hpp"
#include "kernels.hpp"
#include "products.hpp"

namespace penstock::train {
namespace {

template <class T>
class cuda_backend final : public backend<T> {
 public:
  cuda_backend(gpu::stream_ref stream, const backend_memory& memory)
      : stream_(stream.native()),
        ordinal_(stream.device().ordinal()),
        column_sums_(reinterpret_cast<T*>(memory.column_sums.data())),
        products_(made_on(ordinal_, memory)) {}

  void run(const std::function<void()>& work) override {
    const cuda::current_device current(ordinal_);
    work();
  }

  void multiply(const product& what, const T* a, const T* b, T* c, const T* bias) override {
    products_.multiply(stream_, what, a, b, c, bias);
  }
  void normalise(const row_block& block, std::size_t columns, const T* x, const T* mean, const T* scale, T* out,
                 step_state* state) override {
    cuda::normalise(stream_, block, columns, x, mean, scale, out, state);
  }
  void observe(const row_block& block, std::size_t columns, const T* x, const moment_columns& moments,
               step_state* state) override {
    cuda::observe(stream_, block, columns, x, moments, state);
  }
  void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const T* y, T* dy, T* bias_gradient,
                           bool accumulate) override {
    cuda::activation_gradient(stream_, kind, rows, columns, y, dy, bias_gradient, accumulate, column_sums_);
  }
  void softmax_cross_entropy(const row_block& block, std::size_t classes, T* logits, const std::int32_t* labels,
                             T* row_losses, bool gradient, step_state* state) override {
    cuda::softmax_cross_entropy(stream_, block, classes, logits, labels, row_losses, gradient, state);
  }
  void begin_update(const update_rule& rule, step_state* state) override { cuda::begin_update(stream_, rule, state); }
  void discard(step_state* state) override { cuda::discard(stream_, state); }
  void reset(const metrics& start, bool forgive, step_state* state) override {
    cuda::reset(stream_, start, forgive, state);
  }

 private:
  static cuda::products<T> made_on(int ordinal, const backend_memory& memory) {
    const cuda::current_device current(ordinal);
    return cuda::products<T>(memory.workspace);
  }

  cudaStream_t stream_;
  int ordinal_;
  T* column_sums_;
  cuda::products<T> products_;
};

}  // namespace

std::size_t column_sum_elements(gpu::device d, std::size_t rows, std::size_t widest) {
  if (d.is_host()) return 0;
  return (rows + cuda::column_sum_rows - 1) / cuda::column_sum_rows * widest;
}

template <class T>
std::unique_ptr<backend<T>> make_backend(gpu::stream_ref stream, std::size_t threads, const backend_memory& memory) {
  if (stream.device().is_host()) return host::make_backend<T>(threads);
  return std::make_unique<cuda_backend<T>>(stream, memory);
}
template std::unique_ptr<backend<float>> make_backend(gpu::stream_ref, std::size_t, const backend_memory&);
template std::unique_ptr<backend<double>> make_backend(gpu::stream_ref, std::size_t, const backend_memory&);

}  // namespace penstock::train
