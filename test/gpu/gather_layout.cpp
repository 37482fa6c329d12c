// Where a gather takes rows from and puts them: images, rings, draws, alignments. Elements keep their bits here.
#include <penstock/gpu/gather.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <random>
#include <vector>

#include "../support/gpu.hpp"
#include "gather_run.hpp"

using namespace penstock;

namespace {

// Byte `b` of the window's row `row`.
std::byte content(std::uint64_t row, std::uint64_t b) {
  return static_cast<std::byte>(gpu::mix(row * 1000003 + b) >> 11);
}

// Block images that hold the window's rows, written one after the other by a walk over slots; the rest is noise.
std::vector<std::byte> images_of(const test::gather_shape& shape) {
  const auto& s = shape.source;
  std::vector<std::byte> bytes(s.images * s.image_bytes, std::byte{0xee});
  std::uint64_t slot = s.first_image, row = 0;
  for (std::uint64_t image = 0; image < s.images; ++image) {
    std::byte* at = bytes.data() + slot * s.image_bytes + s.offset;
    for (std::uint64_t r = 0; r < s.image_rows; ++r, ++row)
      for (std::uint64_t b = 0; b < shape.source_row_bytes(); ++b) *at++ = content(row, b);
    slot = slot + 1 == s.images ? 0 : slot + 1;
  }
  return bytes;
}

// What the ring must hold: the drawn rows, put in one by one.
std::vector<std::byte> expected_ring(const test::gather_shape& shape) {
  const std::size_t row_bytes = shape.source_row_bytes(), element_bytes = size_of(shape.source.element);
  std::vector<std::byte> ring(shape.target_bytes(), test::untouched);
  std::uint64_t place = shape.first_target % shape.target.rows;
  for (std::uint64_t k = 0; k < shape.count; ++k) {
    for (std::size_t b = 0; b < row_bytes; ++b) {
      const std::size_t from =
          shape.source.swapped ? b / element_bytes * element_bytes + element_bytes - 1 - b % element_bytes : b;
      ring[place * row_bytes + b] = content(shape.draw(shape.first_source + k), from);
    }
    place = place + 1 == shape.target.rows ? 0 : place + 1;
  }
  return ring;
}

void check(gpu::device d, const test::gather_shape& shape, std::size_t shift_bytes = 0) {
  const bool same = test::run_gather(d, shape, images_of(shape), shift_bytes) == expected_ring(shape);
  BOOST_TEST(same, d.name() << ": " << shape.count << " rows of " << shape.elements << " "
                            << name_of(shape.source.element) << (shape.source.swapped ? " swapped" : "") << " from "
                            << shape.first_source << " in " << shape.source.images << " images of "
                            << shape.source.image_rows << " rows, offset " << shape.source.offset << ", into "
                            << shape.first_target << " of " << shape.target.rows
                            << (shape.draw.is_identity() ? "" : ", drawn") << ", shifted by " << shift_bytes);
}

test::gather_shape shape_of(type element, std::uint64_t elements) {
  test::gather_shape shape;
  shape.elements = elements;
  shape.source.element = shape.target.element = element;
  return shape;
}

// Rows of every size that matters to the kernels: one element, odd ones, multiples of 16, of more than a tile.
void check_row_sizes(gpu::device d) {
  for (const type element : {type::uint8, type::float16, type::float32, type::float64})
    for (const std::uint64_t elements :
         {1U, 2U, 3U, 4U, 5U, 7U, 8U, 10U, 16U, 31U, 33U, 49U, 64U, 100U, 196U, 784U, 1024U, 4099U})
      for (const bool swapped : {false, true}) {
        auto shape = shape_of(element, elements);
        shape.source.swapped = swapped;
        shape.source.image_rows = 5;
        shape.source.images = 3;
        shape.source.first_image = 2;
        shape.source.offset = 16;
        shape.source.image_bytes = align_up(16 + 5 * shape.source_row_bytes(), 64);
        shape.target.rows = 13;
        shape.first_source = 2;
        shape.first_target = 13 * 7 + 9;
        shape.count = 12;
        shape.draw = gpu::permutation(15, elements);
        check(d, shape);
        shape.draw = gpu::permutation::identity();
        check(d, shape);
      }
}

// Addresses that allow 16, 8, 4, 2 and 1 bytes at a time.
void check_alignments(gpu::device d) {
  for (const std::size_t shift : {0U, 1U, 2U, 4U, 8U, 12U, 16U}) {
    for (const type element : {type::int8, type::bfloat16, type::int32, type::uint64}) {
      if (shift % size_of(element) != 0) continue;
      auto shape = shape_of(element, 96);
      shape.source.image_rows = 4;
      shape.source.images = 2;
      shape.source.image_bytes = 4 * shape.source_row_bytes() + size_of(element);
      shape.target.rows = 8;
      shape.count = 8;
      for (const bool swapped : {false, true}) {
        shape.source.swapped = swapped;
        check(d, shape, shift);
      }
    }
  }
}

void check_random_shapes(gpu::device d) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int n = 0; n < 200; ++n) {
    auto shape = shape_of(static_cast<type>(below(12)), 1 + below(below(2) ? 8 : 600));
    const std::size_t size = size_of(shape.source.element);
    shape.source.swapped = below(2) == 1;
    shape.source.image_rows = 1 + below(40);
    shape.source.images = 1 + below(6);
    shape.source.first_image = below(shape.source.images);
    shape.source.offset = size * below(9);
    shape.source.image_bytes =
        shape.source.offset + shape.source.image_rows * shape.source_row_bytes() + size * below(9);
    const std::uint64_t window = shape.source.image_rows * shape.source.images;
    shape.first_source = below(window);
    shape.count = 1 + below(window - shape.first_source);
    if (below(2)) shape.draw = gpu::permutation(window, random());
    shape.target.rows = shape.count + below(20);
    shape.first_target = below(1000);
    check(d, shape, size * below(3));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gather_layout)

// Worked out by hand: two images of two rows of two bytes, the window starts at the second slot.
BOOST_AUTO_TEST_CASE(a_window_over_the_last_image_goes_on_at_the_first) {
  auto shape = shape_of(type::uint8, 2);
  shape.source.image_rows = 2;
  shape.source.images = 2;
  shape.source.first_image = 1;
  shape.source.offset = 1;
  shape.source.image_bytes = 6;
  shape.target.rows = 3;
  shape.first_target = 4;
  shape.first_source = 1;
  shape.count = 3;
  const std::vector<int> source{99, 5, 6, 7, 8, 99, 99, 1, 2, 3, 4, 99};
  std::vector<std::byte> bytes;
  for (const int b : source) bytes.push_back(static_cast<std::byte>(b));
  std::vector<int> ring;
  for (const std::byte b : test::run_gather(gpu::device::host(), shape, bytes)) ring.push_back(std::to_integer<int>(b));
  BOOST_TEST(ring == (std::vector<int>{7, 8, 3, 4, 5, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_of_every_size_arrive) { check_row_sizes(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(rows_of_every_size_arrive_on_cuda, test::on_gpu()) { check_row_sizes(test::first_gpu()); }
BOOST_AUTO_TEST_CASE(addresses_of_every_alignment_serve) { check_alignments(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(addresses_of_every_alignment_serve_on_cuda, test::on_gpu()) {
  check_alignments(test::first_gpu());
}
BOOST_AUTO_TEST_CASE(random_shapes_arrive) { check_random_shapes(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(random_shapes_arrive_on_cuda, test::on_gpu()) { check_random_shapes(test::first_gpu()); }

// Enough rows for many tasks, and for a grid of many blocks.
BOOST_AUTO_TEST_CASE(many_small_rows_arrive) {
  auto shape = shape_of(type::int32, 1);
  shape.source.image_rows = shape.target.rows = shape.count = 300000;
  shape.source.image_bytes = shape.count * 4;
  shape.draw = gpu::permutation(shape.count, 3);
  check(gpu::device::host(), shape);
}
BOOST_AUTO_TEST_CASE(many_small_rows_arrive_on_cuda, test::on_gpu()) {
  auto shape = shape_of(type::int32, 1);
  shape.source.image_rows = shape.target.rows = shape.count = 300000;
  shape.source.image_bytes = shape.count * 4;
  shape.draw = gpu::permutation(shape.count, 3);
  check(test::first_gpu(), shape);
}

BOOST_AUTO_TEST_SUITE_END()
