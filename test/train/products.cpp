#include "host/products.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

using namespace penstock::train;

namespace {

template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (auto& value : values) value = static_cast<T>(uniform(random));
  return values;
}

/// The product by three loops, in long double.
template <class T>
long double reference(const product& p, const std::vector<T>& a, const std::vector<T>& b, std::size_t i,
                      std::size_t j) {
  long double sum = 0;
  for (std::size_t k = 0; k < p.depth; ++k)
    sum += static_cast<long double>(p.transpose_a ? a[k * p.rows + i] : a[i * p.depth + k]) *
           (p.transpose_b ? b[j * p.depth + k] : b[k * p.columns + j]);
  return sum;
}

template <class T>
void compare(const product& p, bool unpacked, double tolerance) {
  const auto a = random_values<T>(p.rows * p.depth, 1), b = random_values<T>(p.depth * p.columns, 2);
  const auto bias = random_values<T>(p.columns, 3), before = random_values<T>(p.rows * p.columns, 4);
  std::vector<T> c = before;
  host::multiply(p, host::tiles_of(p, sizeof(T), unpacked), a.data(), b.data(), c.data(), bias.data());
  double worst = 0;
  for (std::size_t i = 0; i < p.rows; ++i)
    for (std::size_t j = 0; j < p.columns; ++j) {
      long double expected = reference(p, a, b, i, j);
      if (p.accumulate) expected += before[i * p.columns + j];
      if (p.bias) expected += bias[j];
      if (p.bias && p.activation == activation::relu && expected < 0) expected = 0;
      worst = std::max(worst, std::abs(static_cast<double>(expected - c[i * p.columns + j])));
    }
  BOOST_TEST(worst < tolerance * static_cast<double>(p.depth));
}

const std::vector<std::vector<std::size_t>> extents{{1, 1, 1},     {3, 5, 7},   {128, 256, 33}, {129, 257, 64},
                                                    {300, 10, 17}, {7, 600, 2}, {50, 70, 1100}};

}  // namespace

namespace std {
static ostream& operator<<(ostream& out, const vector<size_t>& v) {
  return out << v[0] << " x " << v[1] << " x " << v[2];
}
}  // namespace std

BOOST_AUTO_TEST_SUITE(products)

BOOST_DATA_TEST_CASE(tiles_give_the_product_of_three_loops, boost::unit_test::data::make(extents), e) {
  for (int form = 0; form < 32; ++form) {
    const product p{.rows = e[0],
                    .columns = e[1],
                    .depth = e[2],
                    .transpose_a = (form & 1) != 0,
                    .transpose_b = (form & 2) != 0,
                    .accumulate = (form & 4) != 0,
                    .bias = (form & 8) != 0,
                    .activation = (form & 16) != 0 ? activation::relu : activation::identity};
    for (const bool unpacked : {false, true}) {
      compare<float>(p, unpacked, 2e-7);
      compare<double>(p, unpacked, 4e-16);
    }
  }
}

BOOST_DATA_TEST_CASE(the_bits_do_not_depend_on_the_number_of_threads, boost::unit_test::data::xrange(8), form) {
  const product p{
      .rows = 301, .columns = 517, .depth = 1203, .transpose_a = (form & 1) != 0, .transpose_b = (form & 2) != 0};
  const auto tile = host::tiles_of(p, sizeof(float), (form & 4) != 0);
  const auto a = random_values<float>(p.rows * p.depth, 1), b = random_values<float>(p.depth * p.columns, 2);
  const auto run = [&](int threads) {
    std::vector<float> c(p.rows * p.columns);
    const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 8);
    tbb::task_arena arena(threads);
    arena.execute([&] { host::multiply<float>(p, tile, a.data(), b.data(), c.data(), nullptr); });
    return c;
  };
  const auto one = run(1);
  for (const int threads : {2, 3, 8}) BOOST_TEST(std::memcmp(run(threads).data(), one.data(), one.size() * 4) == 0);
}

BOOST_AUTO_TEST_CASE(tiles_are_equal_parts_near_the_size_that_suits_the_kernels) {
  const auto tiles = [](const product& p, bool unpacked) { return host::tiles_of(p, sizeof(float), unpacked); };
  const product forward{.rows = 256, .columns = 512, .depth = 784, .transpose_b = true};
  BOOST_TEST((tiles(forward, true) == host::tile_shape{32, 32, 784}));
  BOOST_TEST((tiles(forward, false) == host::tile_shape{128, 256, 784}));
  // Depth 1100 in two pieces, 790 columns in 13 of 61, each rounded up to 16.
  const product weights{.rows = 512, .columns = 790, .depth = 1100, .transpose_a = true};
  BOOST_TEST((tiles(weights, true) == host::tile_shape{48, 64, 224}));
  BOOST_TEST(
      (tiles({.rows = 64, .columns = 64, .depth = 1100, .transpose_b = true}, true) == host::tile_shape{32, 32, 560}));
}

BOOST_AUTO_TEST_CASE(factors_that_are_large_or_thin_are_packed) {
  const auto packed = [](const product& p, std::size_t element_bytes) {
    return host::tiles_of(p, element_bytes, true) == host::tiles_of(p, element_bytes, false);
  };
  const product square{.rows = 1024, .columns = 1024, .depth = 1024};
  BOOST_TEST(!packed(square, sizeof(float)));  // 8 MiB of factors
  BOOST_TEST(packed(square, sizeof(double)));
  BOOST_TEST(packed({.rows = 256, .columns = 512, .depth = 31, .transpose_b = true}, sizeof(float)));
  BOOST_TEST(!packed({.rows = 256, .columns = 512, .depth = 31}, sizeof(float)));
}

BOOST_AUTO_TEST_CASE(kernels_without_packing_are_known_by_the_name_of_their_processor) {
  for (const char* name : {"SkylakeX", "SKYLAKEX", "Cooperlake", "SapphireRapids"})
    BOOST_TEST(host::has_unpacked_kernels(name));
  for (const char* name : {"Haswell", "Zen", "Skylake", ""}) BOOST_TEST(!host::has_unpacked_kernels(name));
}

BOOST_AUTO_TEST_SUITE_END()
