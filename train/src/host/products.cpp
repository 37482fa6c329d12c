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

}  // namespace penstock::train::host
