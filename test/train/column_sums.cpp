// Gradients of biases on CUDA: of more rows than a grid has blocks in its second dimension.
#include "cuda/column_sums.hpp"

#include "cuda/kernels.hpp"
#include "gpu.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <vector>

using namespace penstock;
using gpu::memory_kind;
using train::cuda::column_sum_rows;

BOOST_AUTO_TEST_SUITE(column_sums)

BOOST_AUTO_TEST_CASE(any_number_of_rows_is_summed, test::on_gpu()) {
  constexpr std::size_t blocks = 65'535, columns = 2;
  const gpu::stream stream(test::first_gpu());
  for (const std::size_t rows : {column_sum_rows * blocks, column_sum_rows * blocks + 1}) {
    gpu::ledger items;
    items.add(memory_kind::device, "dy", rows * columns * sizeof(float));
    items.add(memory_kind::device, "sums", columns * sizeof(float));
    items.add(memory_kind::device, "partial", (blocks + 1) * columns * sizeof(float));
    const gpu::memory memory(test::first_gpu(), items);
    const auto at = [&](const char* name) {
      return reinterpret_cast<float*>(memory.at(memory_kind::device, name).data());
    };
    std::vector<float> ones_and_halves(rows * columns, 1), sums(columns);
    for (std::size_t row = 0; row < rows; ++row) ones_and_halves[row * columns + 1] = 0.5F;
    gpu::copy(stream, at("dy"), ones_and_halves.data(), rows * columns * sizeof(float));
    train::cuda::activation_gradient(stream.ref().native(), train::activation::identity, rows, columns, at("dy"),
                                     at("dy"), at("sums"), false, at("partial"));
    gpu::copy(stream, sums.data(), at("sums"), columns * sizeof(float));
    stream.synchronize();
    BOOST_TEST(sums[0] == static_cast<float>(rows));  // below 2^24: exact
    BOOST_TEST(sums[1] == static_cast<float>(rows) / 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()
