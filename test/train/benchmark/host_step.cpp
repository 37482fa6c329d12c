// How long a training step takes on the host, against its matrix products alone: those products as Penstock computes
// them, on tiles, and by OpenBLAS with threads of its own. The three take turns, and medians are compared turn by turn,
// so that what else the machine does falls on all of them. Widths of Fashion-MNIST: 784-512-256-10, float32, AdamW.
#include "fixture.hpp"
#include "host/products.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace penstock;

namespace {

constexpr std::size_t batch_rows = 256, batches = 16;
const std::vector<std::size_t> widths{784, 512, 256, 10};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double quantile(std::vector<double> values, std::size_t tenths) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() * tenths / 10);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}
double median(std::vector<double> values) { return quantile(std::move(values), 5); }

/// What each round came to: its median, and the bound of its fastest tenth, which other work on the machine moves less.
struct rounds_of {
  std::vector<double> medians, tenths;

  void add(const std::vector<double>& times) {
    if (times.empty()) return;
    medians.push_back(median(times));
    tenths.push_back(quantile(times, 1));
  }
};

/// A product of the step, between arrays of its own.
struct placed_product {
  std::string name;
  train::product what;
  bool of_inputs = false;  ///< its factor a (forward) or b (backward) is the batch's rows
  float *a = nullptr, *b = nullptr, *c = nullptr;
};

/// As dense layers call them, in their order.
std::vector<placed_product> products_of_a_step() {
  std::vector<placed_product> all;
  for (std::size_t n = 0; n + 1 < widths.size(); ++n)
    all.push_back({fmt::format("y{} = x W^T", n),
                   {.rows = batch_rows, .columns = widths[n + 1], .depth = widths[n], .transpose_b = true},
                   n == 0});
  for (std::size_t n = widths.size() - 1; n-- > 0;) {
    all.push_back({fmt::format("dW{} = dy^T x", n),
                   {.rows = widths[n + 1], .columns = widths[n], .depth = batch_rows, .transpose_a = true},
                   n == 0});
    if (n > 0)
      all.push_back(
          {fmt::format("dx{} = dy W", n), {.rows = batch_rows, .columns = widths[n], .depth = widths[n + 1]}});
  }
  return all;
}

/// Gives the products their arrays, in one allocation of the kind that a stage is in.
gpu::memory allocate(std::vector<placed_product>& products) {
  constexpr auto kind = gpu::memory_kind::device;
  gpu::ledger items;
  for (const auto& p : products) {
    items.add(kind, p.name + ", a", p.what.rows * p.what.depth * sizeof(float));
    items.add(kind, p.name + ", b", p.what.depth * p.what.columns * sizeof(float));
    items.add(kind, p.name + ", c", p.what.rows * p.what.columns * sizeof(float));
  }
  gpu::memory memory(gpu::device::host(), items);
  for (auto& p : products) {
    const auto place = [&](const char* name) {
      return reinterpret_cast<float*>(memory.at(kind, p.name + name).data());
    };
    p.a = place(", a"), p.b = place(", b"), p.c = place(", c");
    std::ranges::copy(test::rows_of<float>(p.what.rows, p.what.depth, 2).x, p.a);
    std::ranges::copy(test::rows_of<float>(p.what.depth, p.what.columns, 2).x, p.b);
  }
  return memory;
}

using multiply = std::function<void(const train::product&, const float*, const float*, float*)>;

void multiply_by_openblas(const train::product& p, const float* a, const float* b, float* c) {
  const auto of = [](std::size_t n) { return static_cast<blasint>(n); };
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans, p.transpose_b ? CblasTrans : CblasNoTrans,
              of(p.rows), of(p.columns), of(p.depth), 1, a, of(p.transpose_a ? p.rows : p.depth), b,
              of(p.transpose_b ? p.depth : p.columns), 0, c, of(p.columns));
}

/// Seconds of each product, then of all of them, once for every time.
using product_times = std::vector<std::vector<double>>;

/// Calls `once(n)` for a while, first without counting: threads of the one before may still spin.
void repeat(double seconds, const std::function<void(std::size_t, bool)>& once) {
  std::size_t n = 0;
  for (const double end = now() + 0.1; now() < end;) once(n++, false);
  for (const double end = now() + seconds; now() < end;) once(n++, true);
}

void time_products(std::vector<placed_product>& products, const test::rows_of<float>& data, double seconds,
                   const multiply& by, product_times& times) {
  repeat(seconds, [&](std::size_t n, bool counted) {
    const float* const rows = data.row(n % batches * batch_rows);
    const double start = now();
    double before = start;
    for (std::size_t i = 0; i < products.size(); ++i) {
      placed_product& p = products[i];
      const bool forward = p.what.transpose_b;
      by(p.what, p.of_inputs && forward ? rows : p.a, p.of_inputs && !forward ? rows : p.b, p.c);
      const double after = now();
      if (counted) times[i].push_back(after - before);
      before = after;
    }
    if (counted) times[products.size()].push_back(before - start);
  });
}

double median_of_ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t n = 0; n < a.size(); ++n) ratios.push_back(a[n] / b[n]);
  return median(ratios);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (threads < 1 || rounds < 1) {
    fmt::print(stderr, "usage: {} [THREADS [ROUNDS]]\n", argv[0]);
    return 2;
  }
  constexpr double seconds = 0.2;
  const test::rows_of<float> data(batches * batch_rows, widths.front(), widths.back());
  test::host_stage<float> model(
      {.model = {.inputs = widths.front(), .hidden = {widths[1], widths[2]}, .outputs = widths.back()},
       .rows = batch_rows,
       .threads = static_cast<std::size_t>(threads)});
  auto products = products_of_a_step();
  const gpu::memory memory = allocate(products);
  tbb::task_arena arena(threads);
  const multiply tiled = [&](const train::product& p, const float* a, const float* b, float* c) {
    arena.execute([&] { train::host::multiply<float>(p, a, b, c, nullptr); });
  };

  // [of what][round]: the products, all of them, the step
  const std::size_t sum = products.size(), step = sum + 1;
  std::vector<rounds_of> on_tiles(step + 1), by_openblas(step + 1);
  for (int round = 0; round < rounds; ++round) {
    product_times tiles(step + 1), openblas(step + 1);
    repeat(seconds, [&](std::size_t n, bool counted) {
      const double start = now();
      model.accumulate(data, n % batches * batch_rows, batch_rows);
      model.stage.update(1e-6);
      if (counted) tiles[step].push_back(now() - start);
    });
    time_products(products, data, seconds, tiled, tiles);
    openblas_set_num_threads(threads);
    time_products(products, data, seconds, multiply_by_openblas, openblas);
    openblas_set_num_threads(1);
    for (std::size_t i = 0; i <= step; ++i) on_tiles[i].add(tiles[i]);
    for (std::size_t i = 0; i <= sum; ++i) by_openblas[i].add(openblas[i]);
  }

  fmt::print("{} threads, {} rounds, {}\n\n{:<14}{:>16}{:>11}{:>13}{:>8}{:>9}\n", threads, rounds,
             openblas_get_config(), "fastest tenths", "m x n x k", "tiles, us", "OpenBLAS, us", "ratio", "GFLOP/s");
  double tiles_sum = 0, openblas_sum = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const train::product& p = products[i].what;
    const double t = median(on_tiles[i].tenths), o = median(by_openblas[i].tenths);
    tiles_sum += t, openblas_sum += o;
    fmt::print("{:<14}{:>16}{:>11.0f}{:>13.0f}{:>8.2f}{:>9.0f}\n", products[i].name,
               fmt::format("{}x{}x{}", p.rows, p.columns, p.depth), t * 1e6, o * 1e6, t / o,
               2e-9 * static_cast<double>(p.rows * p.columns * p.depth) / t);
  }
  fmt::print("{:<30}{:>11.0f}{:>13.0f}{:>8.2f}\n", "their sum", tiles_sum * 1e6, openblas_sum * 1e6,
             tiles_sum / openblas_sum);
  const auto summary = [&](const char* name, std::vector<double> rounds_of::*of) {
    const auto &s = on_tiles[step].*of, &t = on_tiles[sum].*of, &o = by_openblas[sum].*of;
    fmt::print("{:<16}{:>9.0f}{:>11.0f}{:>13.0f}{:>15.3f}{:>18.3f}\n", name, median(s) * 1e6, median(t) * 1e6,
               median(o) * 1e6, median_of_ratios(s, t), median_of_ratios(t, o));
  };
  fmt::print("\n{:<16}{:>9}{:>11}{:>13}{:>15}{:>18}\n", "", "step, us", "tiles, us", "OpenBLAS, us", "step / tiles",
             "tiles / OpenBLAS");
  summary("medians", &rounds_of::medians);
  summary("fastest tenths", &rounds_of::tenths);
}
