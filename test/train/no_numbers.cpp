// Rows whose outputs are no numbers, on the GPU as on the host.

#include "device_stage.hpp"
#include "gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <numeric>

using namespace penstock;
using penstock::test::device_stage;
using penstock::test::rows_of;

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(rows_of_no_numbers_predict_nothing_on_cuda_as_on_the_host, test::on_gpu()) {
  constexpr std::size_t classes = 40;  // more than the lanes of a warp
  rows_of<float> data(64, classes, classes);
  for (const std::size_t at : {5 * classes + 39, 9 * classes, 33 * classes + 17})
    data.x[at] = std::numeric_limits<float>::quiet_NaN();
  for (const train::loss_options& loss :
       {train::loss_options{train::softmax_cross_entropy{}}, train::loss_options{train::binary_cross_entropy{}}}) {
    const bool yes_no = std::holds_alternative<train::binary_cross_entropy>(loss);
    if (yes_no)
      for (std::int32_t& label : data.labels) label %= 2;
    const train::stage_options options{.model = {.inputs = classes, .hidden = {}, .outputs = yes_no ? 1 : classes},
                                       .loss = loss,
                                       .confusion = true,
                                       .rows = 64,
                                       .non_finite = train::non_finite::skip};
    device_stage<float> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
    for (device_stage<float>* const each : {&host, &cuda}) each->evaluate(64);
    const auto expected = host.stage.confusion().counts, found = cuda.stage.confusion().counts;
    BOOST_TEST(found == expected, boost::test_tools::per_element());
    BOOST_TEST(std::accumulate(found.begin(), found.end(), std::uint64_t{0}) == 61u);
    BOOST_TEST(cuda.stage.progress().running.correct == host.stage.progress().running.correct);
    BOOST_TEST(cuda.stage.progress().running.in_top_k == host.stage.progress().running.in_top_k);
  }
}

BOOST_AUTO_TEST_SUITE_END()
