#include <penstock/gpu/error.hpp>
#include <penstock/gpu/stream.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../support/gpu.hpp"
#include "faults.hpp"

using namespace penstock;

namespace {

constexpr int illegal_address = 700;  // cudaErrorIllegalAddress

bool has_code(const gpu::error& e) { return e.code() == illegal_address; }

std::shared_ptr<test::failing_site> failing(const char* call) {
  return std::make_shared<test::failing_site>(fault_site::cuda_call, illegal_address, call);
}

// Each use of a stream and of an event asks the seam that belongs to it, under the call's name.
void check_seam(gpu::device d) {
  BOOST_CHECK_EXCEPTION(gpu::stream(d, false, failing("cudaStreamCreateWithPriority")), gpu::error, has_code);
  BOOST_CHECK_EXCEPTION(gpu::event(d, gpu::event_use::order, failing("cudaEventCreateWithFlags")), gpu::error,
                        has_code);
  gpu::event event(d);
  const auto on_stream = [&](const char* call, auto&& use) {
    const gpu::stream stream(d, false, failing(call));
    BOOST_CHECK_EXCEPTION(use(stream), gpu::error, has_code);
  };
  on_stream("cudaStreamSynchronize", [](const gpu::stream& stream) { stream.synchronize(); });
  on_stream("cudaEventRecord", [&](const gpu::stream& stream) { event.record(stream); });
  on_stream("cudaStreamWaitEvent", [&](const gpu::stream& stream) { event.hold(stream); });
  BOOST_CHECK_EXCEPTION(gpu::event(d, gpu::event_use::order, failing("cudaEventQuery")).done(), gpu::error, has_code);
  BOOST_CHECK_EXCEPTION(gpu::event(d, gpu::event_use::order, failing("cudaEventSynchronize")).synchronize(), gpu::error,
                        has_code);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(streams)

BOOST_AUTO_TEST_CASE(the_host_has_no_native_stream) {
  const gpu::stream stream(gpu::device::host());
  BOOST_TEST(stream.ref().native() == nullptr);
  BOOST_TEST((stream.ref() == gpu::stream_ref()));
  stream.synchronize();
}

BOOST_AUTO_TEST_CASE(an_event_of_the_host_has_always_happened) {
  gpu::event event(gpu::device::host());
  BOOST_TEST(event.done());
  event.record(gpu::stream_ref());
  event.hold(gpu::stream_ref());
  event.synchronize();
  BOOST_TEST(event.done());
  BOOST_TEST(milliseconds_between(event, event) == 0);
}

BOOST_AUTO_TEST_CASE(owners_move_and_do_not_copy) {
  static_assert(std::is_nothrow_move_constructible_v<gpu::stream> && !std::is_copy_constructible_v<gpu::stream>);
  static_assert(std::is_nothrow_move_constructible_v<gpu::event> && !std::is_copy_constructible_v<gpu::event>);
}

BOOST_AUTO_TEST_CASE(the_seam_is_asked_by_every_use) { check_seam(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(the_seam_is_asked_by_every_use_on_cuda, test::on_gpu()) { check_seam(test::first_gpu()); }

BOOST_AUTO_TEST_CASE(a_moved_stream_keeps_its_seam) {
  const auto faults = failing("cudaStreamSynchronize");
  gpu::stream first(gpu::device::host(), false, faults);
  const gpu::stream second(std::move(first));
  BOOST_CHECK_EXCEPTION(second.synchronize(), gpu::error, has_code);
}

BOOST_AUTO_TEST_CASE(a_cuda_error_names_the_call_the_device_and_the_place, test::on_gpu()) {
  const gpu::stream stream(test::first_gpu(), false, failing("cudaStreamSynchronize"));
  BOOST_CHECK_EXCEPTION(stream.synchronize(), gpu::error, [](const gpu::error& e) {
    return std::string(e.what()).starts_with(
        "cudaStreamSynchronize on cuda:0 failed: an illegal memory access was encountered (cudaErrorIllegalAddress, "
        "700) "
        "[stream.cpp:");
  });
}

BOOST_AUTO_TEST_CASE(events_and_streams_of_different_devices_do_not_mix, test::on_gpu()) {
  gpu::event host_event(gpu::device::host()), cuda_event(test::first_gpu());
  const gpu::stream stream(test::first_gpu());
  BOOST_CHECK_THROW(host_event.record(stream), std::invalid_argument);
  BOOST_CHECK_THROW(cuda_event.record(gpu::stream_ref()), std::invalid_argument);
  BOOST_CHECK_THROW(cuda_event.hold(gpu::stream_ref()), std::invalid_argument);
  host_event.hold(stream);  // has always happened
  BOOST_CHECK_THROW(milliseconds_between(host_event, cuda_event), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
