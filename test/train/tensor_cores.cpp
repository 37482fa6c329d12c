#include "cuda/products.hpp"

#include <penstock/gpu/error.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace penstock;
using train::precision;

BOOST_AUTO_TEST_SUITE(tensor_cores)

BOOST_AUTO_TEST_CASE(a_card_that_lacks_a_precision_is_refused_with_both_names) {
  const auto refused = [](const char* card, int major, precision arithmetic, const std::string& name) {
    BOOST_CHECK_EXCEPTION(train::cuda::require_tensor_cores(card, major, arithmetic), gpu::error,
                          [&](const gpu::error& e) {
                            const std::string text = e.what();
                            return text.find(card) != std::string::npos && text.find(name) != std::string::npos &&
                                   text.find("float32") != std::string::npos;
                          });
  };
  // NVIDIA's tables of compute capabilities: Pascal is 6, Volta and Turing are 7, Ampere is 8, Hopper 9.
  refused("Tesla P100", 6, precision::fp16, "fp16");
  refused("Tesla T4", 7, precision::bf16, "bf16");
  refused("Tesla T4", 7, precision::tf32, "tf32");
  train::cuda::require_tensor_cores("Tesla T4", 7, precision::fp16);
  for (const precision each : {precision::tf32, precision::bf16, precision::fp16})
    train::cuda::require_tensor_cores("NVIDIA A100", 8, each);
  train::cuda::require_tensor_cores("Tesla P100", 6, precision::float32);
}

BOOST_AUTO_TEST_SUITE_END()
