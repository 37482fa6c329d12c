// The same bits on both devices: random bits of every type, through every conversion.
#include <penstock/gpu/gather.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "../support/gpu.hpp"
#include "gather_run.hpp"

using namespace penstock;

namespace {

constexpr int types = 12;

// Half of the elements are random bits, so that infinities, NaNs and subnormals come up; half are near the range of the
// targets.
std::vector<std::byte> random_elements(std::mt19937_64& random, type element, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(element));
  for (std::size_t n = 0; n < count; ++n)
    visit_type(element, [&](auto zero) {
      using value = decltype(zero);
      const std::uint64_t bits = random();
      value x{};
      std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
      if constexpr (std::is_floating_point_v<value>)
        if (n % 2)
          x = static_cast<value>(static_cast<double>(static_cast<std::int32_t>(bits)) /
                                 static_cast<double>(1 + (bits >> 32) % 70000));
      std::memcpy(bytes.data() + n * sizeof x, &x, sizeof x);
    });
  return bytes;
}

bool is_held(type from, type to, gpu::gather_arithmetic arithmetic) {
  try {
    gpu::check_gather(from, to, arithmetic);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

void compare(type from, type to, bool swapped, gpu::gather_arithmetic arithmetic, std::uint64_t elements) {
  std::mt19937_64 random(static_cast<std::uint64_t>(from) * 100 + elements);
  test::gather_shape shape;
  shape.elements = elements;
  shape.source.element = from;
  shape.source.swapped = swapped;
  shape.source.image_rows = 7;
  shape.source.images = 4;
  shape.source.first_image = 3;
  shape.source.image_bytes = align_up(7 * shape.source_row_bytes(), 16);
  shape.target.element = to;
  shape.target.rows = 30;
  shape.first_target = 21;
  shape.count = 28;
  shape.draw = gpu::permutation(28, 5);
  shape.arithmetic = arithmetic;
  const auto source = random_elements(random, from, shape.source.images * shape.source.image_bytes / size_of(from));
  const auto host = test::run_gather(gpu::device::host(), shape, source);
  const auto cuda = test::run_gather(test::first_gpu(), shape, source);
  BOOST_REQUIRE_EQUAL(host.size(), shape.target_bytes());
  BOOST_REQUIRE_EQUAL(cuda.size(), shape.target_bytes());
  std::size_t different = 0;
  for (std::size_t n = 0; n < host.size() / size_of(to); ++n)
    if (!test::same_value(to, test::bits_at(host, to, n), test::bits_at(cuda, to, n))) ++different;
  BOOST_TEST(different == 0U, different << " elements differ: " << name_of(from) << " to " << name_of(to)
                                        << ", swapped " << swapped << ", scale " << arithmetic.scale << ", " << elements
                                        << " elements a row");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gather_devices)

BOOST_AUTO_TEST_CASE(both_devices_give_the_same_bits_for_every_pair, test::on_gpu()) {
  for (int from = 0; from < types; ++from)
    for (int to = 0; to < types; ++to)
      for (const bool swapped : {false, true})
        for (const gpu::gather_arithmetic arithmetic :
             {gpu::gather_arithmetic{}, gpu::gather_arithmetic{1 / 255.0, -0.1307}})
          if (is_held(static_cast<type>(from), static_cast<type>(to), arithmetic))
            for (const std::uint64_t elements : {3U, 64U})
              compare(static_cast<type>(from), static_cast<type>(to), swapped, arithmetic, elements);
}

BOOST_AUTO_TEST_SUITE_END()
