// Training steps on rows that are on the first CUDA device already: their time, and that of each kernel in a step.
#include "device_stage.hpp"
#include "kernel_trace.hpp"
#include "product_candidates.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

using namespace penstock;

namespace {

constexpr std::size_t classes = 10;
// Batches take turns, more of them than the device's cache holds: rows of a dataset are not in it either.
constexpr std::size_t least_batches = 4, least_bytes = std::size_t{128} << 20;
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

struct settings {
  std::size_t rows = 256, inputs = 1024;
  std::vector<std::size_t> hidden{1024, 1024};
  std::string precision = "tf32";
  std::size_t steps = 2000;
  double seconds = 0;  ///< that a measurement lasts at least; 0: as long as its steps do
  bool kernels = false, products = false;
};

train::stage_options options_of(const settings& s) {
  // Before the aggregate: GCC 12 destroys what it has made of one twice where an initialiser throws (its bug 66139).
  const train::precision arithmetic = train::parse_precision(s.precision);
  return {.model = {.inputs = s.inputs, .hidden = s.hidden, .outputs = classes},
          .rows = s.rows,
          .precision = arithmetic,
          .seed = 1,
          .workspace_bytes = workspace_bytes};
}

std::size_t batches_of(const settings& s) {
  return std::max(least_batches, least_bytes / (s.rows * s.inputs * sizeof(float)));
}

class steps {
 public:
  explicit steps(const settings& s)
      : rows_(s.rows),
        batches_(batches_of(s)),
        data_(batches_ * s.rows, s.inputs, classes),
        on_(gpu::device::all().front(), options_of(s), data_) {}

  void run(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) on_.step(n % batches_ * rows_, rows_, rows_, 1e-3);
    on_.stage.progress();
  }

 private:
  std::size_t rows_, batches_;
  test::rows_of<float> data_;
  test::device_stage<float> on_;
};

/// Seconds of a step.
double timed(steps& all, std::size_t count) {
  const auto start = std::chrono::steady_clock::now();
  all.run(count);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(count);
}

void print_times(steps& all, const settings& s) {
  const double about = timed(all, std::max<std::size_t>(s.steps / 10, 10));
  const auto needed = static_cast<std::size_t>(std::ceil(s.seconds / about));
  std::vector<double> seconds;
  for (int n = 0; n < 5; ++n) seconds.push_back(timed(all, s.seconds > 0 ? needed : s.steps));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  fmt::print("{}, {} rows: {:.2f} us a step (median of {}; {:.2f} to {:.2f}), {:.2f} GB/s of inputs\n", s.precision,
             s.rows, median * 1e6, seconds.size(), seconds.front() * 1e6, seconds.back() * 1e6,
             static_cast<double>(s.rows * s.inputs * sizeof(float)) / median / 1e9);
}

/// The kernels of the last whole step, each with the pause before it.
void print_kernels(steps& all) {
  benchmark::start_trace();
  all.run(50);
  const auto kernels = benchmark::end_trace();
  std::vector<std::size_t> begins;
  for (std::size_t n = 0; n < kernels.size(); ++n)
    if (kernels[n].name.find("take_kernel") != std::string::npos) begins.push_back(n);
  if (begins.size() < 2) return static_cast<void>(fmt::print("fewer than two steps were traced\n"));
  const std::size_t first = begins[begins.size() - 2], last = begins.back();
  fmt::print("a step of {} kernels, {:.1f} us while it is traced\n", last - first,
             static_cast<double>(kernels[last].begin_ns - kernels[first].begin_ns) / 1e3);
  for (std::size_t n = first; n < last; ++n)
    fmt::print(
        "  {:7.2f} us, after {:5.2f}  {}\n", static_cast<double>(kernels[n].end_ns - kernels[n].begin_ns) / 1e3,
        n == 0 ? 0.0 : (static_cast<double>(kernels[n].begin_ns) - static_cast<double>(kernels[n - 1].end_ns)) / 1e3,
        kernels[n].name.substr(0, 150));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Training steps on rows that are on the first CUDA device already.", "penstock-benchmark-train");
  settings s;
  app.add_option("--rows", s.rows, "rows of a batch");
  app.add_option("--inputs", s.inputs, "values of a row");
  app.add_option("--hidden", s.hidden, "widths of the hidden layers")->delimiter(',');
  app.add_option("--precision", s.precision, "float32, tf32, bf16 or fp16");
  app.add_option("--steps", s.steps, "steps of each of five measurements");
  app.add_option("--seconds", s.seconds, "what each of them takes about, whatever --steps");
  app.add_flag("--kernels", s.kernels, "the time of each kernel in a step");
  app.add_flag("--products", s.products, "cuBLASLt's algorithms for the first and the last layer, with their times");
  CLI11_PARSE(app, argc, argv);
  try {
    if (gpu::device::all().front().is_host()) throw std::runtime_error("there is no CUDA device");
    steps all(s);
    all.run(10);  // kernels are loaded, and the step is recorded
    print_times(all, s);
    if (s.kernels) print_kernels(all);
    if (!s.products) return 0;
    const auto arithmetic = train::parse_precision(s.precision);
    benchmark::print_candidates(arithmetic, s.rows, s.inputs, s.hidden.empty() ? classes : s.hidden[0],
                                workspace_bytes);
    if (!s.hidden.empty()) benchmark::print_candidates(arithmetic, s.rows, s.hidden.back(), classes, workspace_bytes);
  } catch (const std::exception& e) {
    fmt::print(stderr, "penstock-benchmark-train: {}\n", e.what());
    return 1;
  }
  return 0;
}
