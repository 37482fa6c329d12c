#include "products.hpp"

#include "../activation.hpp"

#include <cblas.h>
#include <tbb/blocked_range2d.h>
#include <tbb/parallel_for.h>

#include <algorithm>

namespace penstock::train::host {
namespace {

// Tiles near this size keep OpenBLAS's packing a small part of the work, and give a few cores enough to share.
// Constants: another size is another order of OpenBLAS's own inner blocks, and so other bits.
constexpr std::size_t tile_rows = 128;
constexpr std::size_t tile_columns = 256;
constexpr std::size_t grain = 16;  // extents are multiples of it, as OpenBLAS's kernels like

/// The extent of each tile where `n` is cut into equal ones of about `wanted`.
std::size_t extent_of(std::size_t n, std::size_t wanted) {
  const std::size_t tiles = std::max<std::size_t>(1, (n + wanted - 1) / wanted);
  return ((n + tiles - 1) / tiles + grain - 1) / grain * grain;
}

CBLAS_TRANSPOSE transposed(bool t) { return t ? CblasTrans : CblasNoTrans; }

void gemm(const product& p, blasint m, blasint n, const float* a, blasint lda, const float* b, blasint ldb, float* c) {
  cblas_sgemm(CblasRowMajor, transposed(p.transpose_a), transposed(p.transpose_b), m, n, static_cast<blasint>(p.depth),
              1, a, lda, b, ldb, p.accumulate ? 1.0f : 0.0f, c, static_cast<blasint>(p.columns));
}
void gemm(const product& p, blasint m, blasint n, const double* a, blasint lda, const double* b, blasint ldb,
          double* c) {
  cblas_dgemm(CblasRowMajor, transposed(p.transpose_a), transposed(p.transpose_b), m, n, static_cast<blasint>(p.depth),
              1, a, lda, b, ldb, p.accumulate ? 1.0 : 0.0, c, static_cast<blasint>(p.columns));
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
void multiply(const product& p, const T* a, const T* b, T* c, const T* bias) {
  const std::size_t m = extent_of(p.rows, tile_rows), n = extent_of(p.columns, tile_columns);
  const std::size_t lda = p.transpose_a ? p.rows : p.depth, ldb = p.transpose_b ? p.depth : p.columns;
  const std::size_t down = (p.rows + m - 1) / m, across = (p.columns + n - 1) / n;
  tbb::parallel_for(
      std::size_t{0}, down * across,
      [&](std::size_t tile) {
        const std::size_t i = tile / across * m, j = tile % across * n;
        const std::size_t rows = std::min(m, p.rows - i), columns = std::min(n, p.columns - j);
        gemm(p, static_cast<blasint>(rows), static_cast<blasint>(columns), a + (p.transpose_a ? i : i * lda),
             static_cast<blasint>(lda), b + (p.transpose_b ? j * ldb : j), static_cast<blasint>(ldb),
             c + i * p.columns + j);
        if (p.bias) finish_tile(p, rows, columns, c + i * p.columns + j, bias + j);
      },
      tbb::simple_partitioner{});
}

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
