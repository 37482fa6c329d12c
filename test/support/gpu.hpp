#pragma once

#include <penstock/gpu/device.hpp>

#include <boost/test/tree/decorator.hpp>
#include <boost/test/unit_test.hpp>

#include <iostream>
#include <string>
#include <string_view>

namespace penstock::test {

/// Whether the test program was called with `--require-gpu` (after `--`): cases that need a GPU then fail, instead of
/// being skipped, where there is none.
inline bool gpu_is_required() {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int n = 1; n < suite.argc; ++n)
    if (std::string_view(suite.argv[n]) == "--require-gpu") return true;
  return false;
}

/// A precondition that skips a case where there are fewer than `devices` CUDA devices, and says so. `--require-gpu`
/// turns that into a failure for the first device; a case for several is skipped with less.
class needs_gpus {
 public:
  explicit needs_gpus(std::size_t devices) : devices_(devices) {}

  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id id) const {
    const std::size_t there = gpu::device::all().size() - 1;  // the host is the last
    if (there >= devices_ || (devices_ == 1 && gpu_is_required())) return true;
    boost::test_tools::assertion_result skipped(false);
    skipped.message() << "needs " << devices_ << " CUDA device" << (devices_ == 1 ? "" : "s") << ", found "
                      << (there == 0 ? "only " + gpu::device::host().description() : std::to_string(there));
    std::cout << "skipped: " << boost::unit_test::framework::get(id, boost::unit_test::TUT_ANY).full_name() << ": "
              << skipped.message().str() << std::endl;
    return skipped;
  }

 private:
  std::size_t devices_;
};

/// BOOST_AUTO_TEST_CASE(name, penstock::test::on_gpu()): the label "gpu", and a skip with its reason where there is no
/// device.
inline boost::unit_test::decorator::collector_t& on_gpu(std::size_t devices = 1) {
  namespace ut = boost::unit_test;
  return *ut::label("gpu") * ut::precondition(needs_gpus(devices));
}

/// The device for such a case. Throws gpu::error where there is none.
inline gpu::device first_gpu() { return gpu::device::cuda(0); }

}  // namespace penstock::test
