#include <penstock/gpu/gather.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/gpu.hpp"
#include "faults.hpp"
#include "gather_run.hpp"

using namespace penstock;

namespace {

struct conversion {
  type from;
  type to;
  double scale;
  double shift;
  std::initializer_list<std::uint64_t> inputs;
  std::initializer_list<std::uint64_t> outputs;
};

// Worked out by data/make_conversions.py. Constant, so that compiling them makes no code.
constexpr conversion conversions[] = {
#include "data/conversions.inc"
};

std::vector<std::byte> packed(type element, std::initializer_list<std::uint64_t> bits, std::size_t times,
                              bool swapped) {
  const std::size_t size = size_of(element);
  std::vector<std::byte> bytes(size * bits.size() * times);
  for (std::size_t n = 0; n < bits.size() * times; ++n) {
    std::byte* const at = bytes.data() + n * size;
    std::memcpy(at, bits.begin() + n % bits.size(), size);
    if (swapped) std::reverse(at, at + size);
  }
  return bytes;
}

// Each conversion as one row of its inputs; and of them four times, which takes the path for wide loads.
void check_conversion(gpu::device d, const conversion& c) {
  for (const std::size_t times : {1U, 4U})
    for (const bool swapped : {false, true}) {
      test::gather_shape shape;
      shape.elements = c.inputs.size() * times;
      shape.source.element = c.from;
      shape.source.swapped = swapped;
      shape.target.element = c.to;
      shape.arithmetic = {c.scale, c.shift};
      const auto out = test::run_gather(d, shape, packed(c.from, c.inputs, times, swapped));
      BOOST_REQUIRE_EQUAL(out.size(), shape.target_bytes());
      for (std::size_t n = 0; n < shape.elements; ++n) {
        const auto input = c.inputs.begin()[n % c.inputs.size()], output = c.outputs.begin()[n % c.inputs.size()];
        const auto got = test::bits_at(out, c.to, n);
        BOOST_TEST(test::same_value(c.to, got, output),
                   name_of(c.from) << " " << std::hex << input << " to " << name_of(c.to) << " gave " << got << ", not "
                                   << output << std::dec << " (scale " << c.scale << ", swapped " << swapped << ")");
      }
    }
}

class first_graph_fails : public fault_injector {
 public:
  fault before(fault_site, std::string_view what, std::uint64_t, std::size_t) override {
    if (what != "cudaGraphLaunch" || failed_) return {};
    failed_ = true;
    return {.error = 719};
  }

 private:
  bool failed_ = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(gathers)

BOOST_AUTO_TEST_CASE(every_pair_of_types_has_its_expected_values) {
  std::array<std::array<bool, 12>, 12> seen{};
  for (const conversion& c : conversions) {
    check_conversion(gpu::device::host(), c);
    seen[static_cast<std::size_t>(c.from)][static_cast<std::size_t>(c.to)] = true;
  }
  for (const auto& row : seen) BOOST_TEST(std::count(row.begin(), row.end(), true) == 7);
}

BOOST_AUTO_TEST_CASE(conversions_give_the_expected_values_on_cuda, test::on_gpu()) {
  for (const conversion& c : conversions) check_conversion(test::first_gpu(), c);
}

BOOST_AUTO_TEST_CASE(pairs_that_are_not_held_are_refused_with_those_that_are) {
  gpu::check_gather(type::int8, type::int8);
  gpu::check_gather(type::uint64, type::uint64);
  gpu::check_gather(type::uint16, type::float32, {2, 1});
  BOOST_CHECK_EXCEPTION(gpu::check_gather(type::float32, type::int8), std::invalid_argument,
                        [](const std::exception& e) {
                          return std::string(e.what()) ==
                                 "float32 cannot be converted to int8; it can to float32, float64, float16, bfloat16, "
                                 "int32, int64 and uint8, and be kept as it is";
                        });
  BOOST_CHECK_THROW(gpu::check_gather(type::int8, type::int8, {2, 0}), std::invalid_argument);
  BOOST_CHECK_THROW(gpu::check_gather(type::uint8, type::float32, {std::nan(""), 0}), std::invalid_argument);
  BOOST_CHECK_THROW(gpu::check_gather(type::uint8, type::float32, {1, std::numeric_limits<double>::infinity()}),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  alignas(8) std::array<std::byte, 64> bytes{};
  const gpu::gather_source source{.base = bytes.data(), .image_bytes = 32, .image_rows = 8, .element = type::float32};
  const gpu::gather_target target{.base = bytes.data() + 32, .rows = 2, .element = type::float32};
  const auto run = [&](const gpu::gather_source& from, const gpu::gather_target& to, std::uint64_t count) {
    gpu::gatherer{gpu::stream_ref()}(from, to, 1, gpu::permutation::identity(), 0, 0, count);
  };
  run(source, target, 2);
  run({}, {}, 0);
  BOOST_CHECK_THROW(run(source, target, 3), std::invalid_argument);
  BOOST_CHECK_THROW(run({}, target, 1), std::invalid_argument);
  auto wrong = source;
  wrong.offset = 2;
  BOOST_CHECK_THROW(run(wrong, target, 1), std::invalid_argument);
  wrong = source;
  wrong.images = 0;
  BOOST_CHECK_THROW(run(wrong, target, 1), std::invalid_argument);
  const auto draw_from = [&](std::uint64_t first) {
    gpu::gatherer{gpu::stream_ref()}(source, target, 1, gpu::permutation(3, 1), first, 0, 2);
  };
  draw_from(1);
  BOOST_CHECK_THROW(draw_from(2), std::invalid_argument);
  BOOST_CHECK_THROW(draw_from(~std::uint64_t{0}), std::invalid_argument);
  auto odd = target;
  odd.base += 1;
  BOOST_CHECK_THROW(run(source, odd, 1), std::invalid_argument);
  odd.element = type::int16;
  BOOST_CHECK_THROW(run(source, odd, 1), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_seam_can_fail_a_gather) {
  const auto faults = std::make_shared<test::failing_site>(fault_site::cuda_call, 719, "cudaGraphLaunch");
  const gpu::stream stream(gpu::device::host(), false, faults);
  std::array<std::byte, 8> from{}, to{};
  BOOST_CHECK_EXCEPTION(gpu::gatherer{stream}({.base = from.data()}, {.base = to.data(), .element = type::uint8}, 4,
                                              gpu::permutation::identity(), 0, 0, 1),
                        gpu::error, [](const gpu::error& e) { return e.code() == 719; });
}

BOOST_AUTO_TEST_CASE(a_gatherer_goes_on_after_a_gather_that_failed) {
  for (const gpu::device d : gpu::device::all()) {
    const auto faults = std::make_shared<first_graph_fails>();
    gpu::ledger items;
    items.add(gpu::memory_kind::device, "from", 8);
    items.add(gpu::memory_kind::device, "to", 8);
    items.add(gpu::memory_kind::pinned, "host", 8);
    const gpu::memory memory(d, items);
    const gpu::stream stream(d, false, faults);
    std::byte* const host = memory.at(gpu::memory_kind::pinned, "host").data();
    std::memcpy(host, "penstock", 8);
    copy(stream, memory.at(gpu::memory_kind::device, "from").data(), host, 8);
    stream.synchronize();
    gpu::gatherer gather_rows(stream);
    const auto gather_all = [&] {
      gather_rows({.base = memory.at(gpu::memory_kind::device, "from").data()},
                  {.base = memory.at(gpu::memory_kind::device, "to").data(), .element = type::uint8}, 8,
                  gpu::permutation::identity(), 0, 0, 1);
    };
    BOOST_CHECK_EXCEPTION(gather_all(), gpu::error, [](const gpu::error& e) { return e.code() == 719; });
    gather_all();
    std::memset(host, 0, 8);
    copy(stream, host, memory.at(gpu::memory_kind::device, "to").data(), 8);
    stream.synchronize();
    BOOST_TEST(std::memcmp(host, "penstock", 8) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
