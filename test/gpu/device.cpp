#include <penstock/gpu/device.hpp>
#include <penstock/gpu/error.hpp>

#include <boost/test/unit_test.hpp>

#include <sched.h>

#include <stdexcept>
#include <string>

#include "../support/gpu.hpp"

using namespace penstock;
using gpu::device;

BOOST_TEST_DONT_PRINT_LOG_VALUE(penstock::gpu::device)

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(the_host_is_always_there) {
  BOOST_TEST(device::host().is_host());
  BOOST_TEST(!device::host().is_cuda());
  BOOST_TEST(device::host().ordinal() == -1);
  BOOST_TEST(device::host().name() == "host");
  BOOST_TEST(device::all().back() == device::host());
  BOOST_TEST(device::host().description().starts_with("host ("));
}

BOOST_AUTO_TEST_CASE(words_name_devices) {
  BOOST_TEST(device::parse("host") == device::host());
  BOOST_TEST(device::parse("cpu") == device::host());
  BOOST_TEST(device::parse("auto") == device::best());
}

BOOST_AUTO_TEST_CASE(a_word_that_names_none_is_answered_with_those_that_do) {
  for (const std::string word :
       {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 0", "cuda:99999999999999", "HOST"})
    BOOST_CHECK_EXCEPTION(device::parse(word), std::invalid_argument, [&](const std::exception& e) {
      return std::string(e.what()) == "'" + word + "' names no device; write host, cuda, cuda:0 or auto";
    });
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_an_error_that_says_what_is) {
  const auto says = [](const std::string& words) {
    return [words](const gpu::error& e) { return std::string(e.what()).find(words) != std::string::npos; };
  };
  BOOST_CHECK_EXCEPTION(device::parse("cuda:1000"), gpu::error, says("there is no device cuda:1000; "));
  BOOST_CHECK_EXCEPTION(device::cuda(-1), gpu::error, says("there is no device cuda:-1"));
  if (device::all().size() == 1) {
    BOOST_CHECK_EXCEPTION(device::cuda(0), gpu::error, says("there is no CUDA device: "));
    BOOST_CHECK_EXCEPTION(device::parse("cuda"), gpu::error, says("use 'host'"));
  }
}

BOOST_AUTO_TEST_CASE(without_a_gpu_the_host_is_best_and_says_so) {
  if (device::all().size() > 1) return;
  BOOST_TEST(device::best() == device::host());
  BOOST_TEST(device::host().description().find("no CUDA device: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_host_has_memory_and_processors) {
  const auto memory = gpu::memory_of(device::host());
  BOOST_TEST(memory.total_bytes > 0U);
  BOOST_TEST(memory.free_bytes <= memory.total_bytes);
  BOOST_TEST(gpu::processors() >= 1U);
}

BOOST_AUTO_TEST_CASE(affinity_bounds_the_processors) {
  cpu_set_t before, one;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  BOOST_REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const std::size_t count = gpu::processors();
  BOOST_REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  BOOST_TEST(count == 1U);
}

BOOST_AUTO_TEST_CASE(a_cuda_device_has_a_name_and_memory, penstock::test::on_gpu()) {
  const device d = penstock::test::first_gpu();
  BOOST_TEST(d.is_cuda());
  BOOST_TEST(d.name() == "cuda:0");
  BOOST_TEST(device::parse("cuda:0") == d);
  BOOST_TEST(device::parse("cuda").is_cuda());
  BOOST_TEST(device::best().is_cuda());
  BOOST_TEST(d.description().starts_with("cuda:0 ("));
  BOOST_TEST(d.description().size() > std::string("cuda:0 ()").size());
  BOOST_TEST(gpu::memory_of(d).total_bytes > std::size_t{1} << 30);
}

BOOST_AUTO_TEST_SUITE_END()
