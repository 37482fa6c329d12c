#include "../backend.hpp"

#include "../elementwise.hpp"
#include "../host/backend.hpp"
#include "../stage_memory.hpp"
#include "check.hpp"
#include "column_sums.hpp"
#include "kernels.hpp"
#include "products.hpp"
#include "replayed_work.hpp"

#include <penstock/bytes.hpp>
#include <penstock/gpu/ledger.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::train {
namespace {

template <class S>
class cuda_backend final : public backend<S> {
 public:
  using T = arithmetic<S>;

  cuda_backend(gpu::stream_ref stream, precision arithmetic, const backend_memory& memory)
      : stream_(stream),
        ordinal_(stream.device().ordinal()),
        arithmetic_(arithmetic),
        workspace_bytes_(memory.workspace.size()),
        column_sums_(reinterpret_cast<T*>(memory.column_sums.data())),
        products_(made_on(ordinal_, arithmetic, first_half(memory.workspace))),
        beside_(stream.device(), false, {fault_seam(), stream.faults()}),
        products_beside_(made_on(ordinal_, arithmetic, second_half(memory.workspace))),
        forked_(stream.device()),
        joined_(stream.device()) {}

  void run(const std::function<void()>& work) override {
    const cuda::current_device current(ordinal_);
    work();
  }

  void replay(std::size_t key, const intake<S>& first, const std::function<void()>& work) override {
    const cuda::current_device current(ordinal_);
    cuda::take_launch<S> take(first);
    graphs_.at(key).run(stream_, take.params(), work);
  }

  void multiply(const product& what, const S* a, const S* b, S* c, const S* bias) override {
    if (what.activation == activation::identity || what.activation == activation::relu)
      return products_.multiply(stream_.native(), what, a, b, c, bias);
    // cuBLASLt has no epilogue for these.
    product sums = what;
    sums.activation = activation::identity;
    products_.multiply(stream_.native(), sums, a, b, c, bias);
    activate<S>(stream_, what.activation, what.rows * what.columns, c, c);
  }
  void multiply_gradient(const product& what, const S* a, const S* b, T* c, T* sums) override {
    fork();
    products_beside_.multiply(beside_.ref().native(), what, a, b, c, what.sums ? sums : nullptr);
  }
  bool makes_sums(const product& what, const S* a, const S* b, T* c, T* sums) override {
    // On tensor cores the epilogue has slower products: on an H100, widths of 1024, a step of 1024 rows in bfloat16
    // takes 144 us with it and 104 us without, one of 256 rows in tf32 104.6 us and 100.6 us. So do few rows: in
    // float32 a step of 256 takes 164 us and 157 us, one of 4096 1035 us and 1051 us.
    constexpr std::size_t least_rows = 1024;
    if (!std::is_same_v<S, T> || arithmetic_ == precision::tf32 || what.depth < least_rows) return false;
    return products_beside_.offers(what, a, b, c, sums);
  }
  void take(const intake<S>& what) override { cuda::launch(stream_, cuda::take_launch<S>(what).params()); }
  void observe(const taken_rows<T>& rows, std::size_t columns, const moment_columns& moments,
               step_state* state) override {
    cuda::observe(stream_.native(), rows, columns, moments, state);
  }
  void activation_gradient(activation kind, std::size_t rows, std::size_t columns, const S* y, S* dy, T* bias_gradient,
                           bool accumulate) override {
    if (bias_gradient == nullptr) {
      if (kind != activation::identity) activate_gradient<S>(stream_, kind, rows * columns, y, y, dy, dy);
      return;
    }
    cuda::activation_gradient(stream_.native(), kind, rows, columns, y, dy, bias_gradient, accumulate, column_sums_);
  }
  void add_scores(const row_score<T>* scores, bool gradient, step_state* state) override {
    if (!gradient) return cuda::add_scores(stream_.native(), scores, gradient, state);
    fork();
    cuda::add_scores(beside_.ref().native(), scores, gradient, state);
  }
  void join() override {
    if (!beside_works_) return;
    joined_.record(beside_);
    joined_.hold(stream_);
    beside_works_ = false;
  }
  /// The card and the library in a line, and one for each product: of one stream, an empty line, of the other.
  std::string algorithms() const override {
    return fmt::format("{}\n{}\n{}", cuda::products_of(stream_.device()), to_text(products_.chosen()),
                       to_text(products_beside_.chosen()));
  }
  std::string set_algorithms(const std::string& chosen) override {
    const std::string here = cuda::products_of(stream_.device());
    const std::size_t first = std::min(chosen.find('\n'), chosen.size());
    const std::string there = chosen.substr(0, first);
    if (there.empty()) return fmt::format("algorithms of products are chosen afresh on {}: none are kept", here);
    if (there != here)
      return fmt::format("algorithms of products are chosen afresh on {}: they were on {}", here, there);
    // An empty line ends the first list, and follows the card's at once where that is empty.
    const std::size_t middle = chosen.find("\n\n", first);
    const std::string_view text = chosen;
    const auto of_stream = cuda::parse_algorithms(
        middle == first || middle == std::string::npos ? std::string_view() : text.substr(first + 1, middle - first));
    const auto beside = cuda::parse_algorithms(middle == std::string::npos ? "?" : text.substr(middle + 2));
    if (!of_stream || !beside) return "algorithms of products are chosen afresh: those kept cannot be read";
    const cuda::current_device current(ordinal_);
    cuda::left_algorithms left = products_.choose(*of_stream);
    left += products_beside_.choose(*beside);
    graphs_ = {};  // they were recorded with the algorithms before
    // Each of the two has a half of the workspace, as half_of() cuts it.
    left.needed_bytes = 2 * align_up(left.needed_bytes, gpu::ledger::alignment);
    return why_left(left, workspace_bytes_);
  }
  void square_gradients(std::size_t count, const T* gradients, double* piece_sums, step_state* state) override {
    cuda::square_gradients(stream_.native(), count, gradients, piece_sums, state);
  }
  void begin_update(const update_rule& rule, step_state* state, bool beside) override {
    if (beside) fork();
    cuda::begin_update(beside ? beside_.ref().native() : stream_.native(), rule, state);
  }
  void discard(step_state* state) override { cuda::discard(stream_.native(), state); }
  void reset(const metrics& start, bool forgive, step_state* state) override {
    cuda::reset(stream_.native(), start, forgive, state);
  }

 private:
  static cuda::products<S> made_on(int ordinal, precision arithmetic, std::span<std::byte> workspace) {
    const cuda::current_device current(ordinal);
    return cuda::products<S>(workspace, arithmetic);
  }

  // Two products that run at once work in a half of the workspace each.
  static std::size_t half_of(std::span<std::byte> workspace) {
    return workspace.size() / 2 / gpu::ledger::alignment * gpu::ledger::alignment;
  }
  static std::span<std::byte> first_half(std::span<std::byte> workspace) { return workspace.first(half_of(workspace)); }
  static std::span<std::byte> second_half(std::span<std::byte> workspace) {
    return workspace.subspan(half_of(workspace));
  }

  /// What the stream beside is given from now on begins after what was asked for so far.
  void fork() {
    forked_.record(stream_);
    forked_.hold(beside_);
    beside_works_ = true;
  }

  gpu::stream_ref stream_;
  int ordinal_;
  precision arithmetic_;
  std::size_t workspace_bytes_;
  T* column_sums_;
  cuda::products<S> products_;
  // At small batches a product leaves most of the device idle: gradients of weights are made beside those of inputs.
  gpu::stream beside_;
  cuda::products<S> products_beside_;
  gpu::event forked_, joined_;
  bool beside_works_ = false;
  std::array<cuda::replayed_work, replay_keys> graphs_;
};

}  // namespace

void check_arithmetic(gpu::device d, precision arithmetic) {
  if (d.is_cuda() && arithmetic != precision::float32) cuda::require_tensor_cores(d, arithmetic);
}

std::size_t column_sum_elements(gpu::device d, std::size_t rows, std::size_t widest) {
  if (d.is_host() || rows <= cuda::column_sum_rows_at_once) return 0;
  return (rows + cuda::column_sum_rows - 1) / cuda::column_sum_rows * widest;
}

template <class S>
std::unique_ptr<backend<S>> make_backend(gpu::stream_ref stream, const stage_options& options,
                                         const backend_memory& memory) {
  if (stream.device().is_host()) return host::make_backend<S>(options.threads);
  check_arithmetic(stream.device(), options.precision);
  return std::make_unique<cuda_backend<S>>(stream, options.precision, memory);
}
template std::unique_ptr<backend<float>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<double>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<bfloat16>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<float16>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);

}  // namespace penstock::train
