#include "products.hpp"

#include "../activation.hpp"

#include <cblas.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

namespace penstock::train::host {
namespace {

/// Multiplications that are worth another thread's turn: some 5 us.
constexpr std::size_t least_task = 250'000;

std::size_t pieces(std::size_t n, std::size_t of) { return (n + of - 1) / of; }

CBLAS_TRANSPOSE transposed(bool t) { return t ? CblasTrans : CblasNoTrans; }
blasint extent(std::size_t n) { return static_cast<blasint>(n); }

/// From one row of a, and of b, to the next, as they lie.
std::pair<blasint, blasint> strides(const product& p) {
  return {extent(p.transpose_a ? p.rows : p.depth), extent(p.transpose_b ? p.depth : p.columns)};
}

void gemm(const product& p, const tile_shape& of, const float* a, const float* b, bool add, float* c) {
  const auto [lda, ldb] = strides(p);
  cblas_sgemm(CblasRowMajor, transposed(p.transpose_a), transposed(p.transpose_b), extent(of.rows), extent(of.columns),
              extent(of.depth), 1, a, lda, b, ldb, add ? 1.0f : 0.0f, c, extent(p.columns));
}
void gemm(const product& p, const tile_shape& of, const double* a, const double* b, bool add, double* c) {
  const auto [lda, ldb] = strides(p);
  cblas_dgemm(CblasRowMajor, transposed(p.transpose_a), transposed(p.transpose_b), extent(of.rows), extent(of.columns),
              extent(of.depth), 1, a, lda, b, ldb, add ? 1.0 : 0.0, c, extent(p.columns));
}

/// A square tile of a product of 16-bit factors, in float32 on the stack.
class widened_tile {
 public:
  static constexpr std::size_t extent = 64;

  widened_tile(const product& p, std::size_t i, std::size_t j)
      : p_(p), i_(i), j_(j), rows_(std::min(extent, p.rows - i)), columns_(std::min(extent, p.columns - j)) {}

  template <class S>
  void multiply(const S* a, const S* b) {
    for (std::size_t k = 0; k < p_.depth; k += extent) {
      const std::size_t depth = std::min(extent, p_.depth - k);
      for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t l = 0; l < depth; ++l)
          a_[i * extent + l] = p_.transpose_a ? a[(k + l) * p_.rows + i_ + i] : a[(i_ + i) * p_.depth + k + l];
      for (std::size_t l = 0; l < depth; ++l)
        for (std::size_t j = 0; j < columns_; ++j)
          b_[l * extent + j] = p_.transpose_b ? b[(j_ + j) * p_.depth + k + l] : b[(k + l) * p_.columns + j_ + j];
      constexpr auto stride = static_cast<blasint>(extent);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(rows_),
                  static_cast<blasint>(columns_), static_cast<blasint>(depth), 1, a_, stride, b_, stride,
                  k == 0 ? 0.0f : 1.0f, c_, stride);
    }
  }

  template <class C>
  void finish(C* c, const C* bias) const {
    visit_activation(p_.activation, [&](auto f) {
      for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t j = 0; j < columns_; ++j) {
          C& to = c[(i_ + i) * p_.columns + j_ + j];
          float value = c_[i * extent + j];
          if (p_.bias) value = f(value + static_cast<float>(bias[j_ + j]));
          if (p_.accumulate) value += static_cast<float>(to);
          to = static_cast<C>(value);
        }
    });
  }

 private:
  const product& p_;
  std::size_t i_, j_, rows_, columns_;
  float a_[extent * extent], b_[extent * extent], c_[extent * extent] = {};
};

template <class T>
void finish_tile(const product& p, std::size_t rows, std::size_t columns, T* c, const T* bias) {
  visit_activation(p.activation, [&](auto f) {
    for (std::size_t i = 0; i < rows; ++i) {
      T* const row = c + i * p.columns;
      for (std::size_t j = 0; j < columns; ++j) row[j] = f(row[j] + bias[j]);
    }
  });
}

}  // namespace

void use_single_threaded_blas() { openblas_set_num_threads(1); }

template <class T>
  requires std::is_floating_point_v<T>
void multiply(const product& p, const tile_shape& tile, const T* a, const T* b, T* c, const T* bias) {
  const std::size_t down = pieces(p.rows, tile.rows), across = pieces(p.columns, tile.columns);
  const auto multiply_tile = [&](std::size_t number) {
    const std::size_t i = number / across * tile.rows, j = number % across * tile.columns;
    tile_shape part{std::min(tile.rows, p.rows - i), std::min(tile.columns, p.columns - j), 0};
    T* const to = c + i * p.columns + j;
    for (std::size_t k = 0; k < p.depth; k += part.depth) {
      part.depth = std::min(tile.depth, p.depth - k);
      gemm(p, part, a + (p.transpose_a ? k * p.rows + i : i * p.depth + k),
           b + (p.transpose_b ? j * p.depth + k : k * p.columns + j), k > 0 || p.accumulate, to);
    }
    if (p.bias) finish_tile(p, part.rows, part.columns, to, bias + j);
  };
  const std::size_t work = tile.rows * tile.columns * p.depth;
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, down * across, pieces(least_task, work)),
      [&](const tbb::blocked_range<std::size_t>& tiles) {
        for (std::size_t tile_number = tiles.begin(); tile_number < tiles.end(); ++tile_number)
          multiply_tile(tile_number);
      },
      tbb::simple_partitioner{});
}

std::string products_of_host() {
  const std::string version = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  return version.substr(0, version.find(' ', version.find(' ') + 1)) + " for " + openblas_get_corename();
}

template <class T>
  requires std::is_floating_point_v<T>
void multiply(const product& p, const T* a, const T* b, T* c, const T* bias) {
  static const bool unpacked = has_unpacked_kernels(openblas_get_corename());
  multiply(p, tiles_of(p, sizeof(T), unpacked), a, b, c, bias);
}

template void multiply(const product&, const tile_shape&, const float*, const float*, float*, const float*);
template void multiply(const product&, const tile_shape&, const double*, const double*, double*, const double*);
template void multiply(const product&, const float*, const float*, float*, const float*);
template void multiply(const product&, const double*, const double*, double*, const double*);

template <class S, class C>
  requires(sizeof(S) == 2)
void multiply(const product& p, const S* a, const S* b, C* c, const C* bias) {
  constexpr std::size_t extent = widened_tile::extent;
  const std::size_t down = (p.rows + extent - 1) / extent, across = (p.columns + extent - 1) / extent;
  tbb::parallel_for(
      std::size_t{0}, down * across,
      [&](std::size_t number) {
        widened_tile tile(p, number / across * extent, number % across * extent);
        tile.multiply(a, b);
        tile.finish(c, bias);
      },
      tbb::simple_partitioner{});
}
template void multiply(const product&, const bfloat16*, const bfloat16*, float*, const float*);
template void multiply(const product&, const bfloat16*, const bfloat16*, bfloat16*, const bfloat16*);
template void multiply(const product&, const float16*, const float16*, float*, const float*);
template void multiply(const product&, const float16*, const float16*, float16*, const float16*);

}  // namespace penstock::train::host
