#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/pipeline/dlpack.hpp>

#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace dlpack = penstock::pipeline::dlpack;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::type;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

std::vector<std::int64_t> shape_of(const dlpack::tensor& t) { return {t.shape, t.shape + t.dimensions}; }
std::vector<std::int64_t> strides_of(const dlpack::tensor& t) { return {t.strides, t.strides + t.dimensions}; }

/// The tensor's bytes, on the host, in the order of `stream`.
template <class T>
std::vector<T> fetch(const dlpack::tensor& t, gpu::stream_ref stream, std::size_t count) {
  std::vector<T> values(count);
  gpu::copy(stream, values.data(), t.data, count * sizeof(T));
  stream.synchronize();
  return values;
}

/// One batch held beside the next.
pp::pipeline build(const small_file& file, gpu::device device) {
  return (pp::read(file.all()) | pp::batched({.rows = 32, .held = 1})).build(device, small);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dlpack_tensors)

BOOST_DATA_TEST_CASE(a_tensor_has_the_shape_strides_type_and_device_of_its_field, every_device, name) {
  const small_file file(100, 16);
  const auto device = gpu::device::parse(name);
  auto pipeline = build(file, device);
  auto range = pipeline.epochs(0, 1);
  const pp::shared_batch batch(range.next());
  const auto image = batch.tensor("image");
  BOOST_TEST(image->tensor.device.type == (device.is_cuda() ? 2 : 1));
  BOOST_TEST(image->tensor.device.ordinal == (device.is_cuda() ? device.ordinal() : 0));
  BOOST_TEST(shape_of(image->tensor) == (std::vector<std::int64_t>{32, 3, 4}));
  BOOST_TEST(strides_of(image->tensor) == (std::vector<std::int64_t>{12, 4, 1}));
  BOOST_TEST(image->tensor.byte_offset == 0U);
  BOOST_TEST(+image->tensor.element.code == 2);
  BOOST_TEST(+image->tensor.element.bits == 32);
  BOOST_TEST(image->tensor.element.lanes == 1);
  BOOST_TEST(image->tensor.data == batch.rows().view("image").data);

  const auto label = batch.tensor_versioned("label");
  BOOST_TEST(label->major == 1U);
  BOOST_TEST(label->flags == 0U);
  BOOST_TEST(shape_of(label->tensor) == (std::vector<std::int64_t>{32}));
  BOOST_TEST(+label->tensor.element.code == 0);
  const auto values = fetch<std::int32_t>(label->tensor, batch.rows().stream(), 32);
  for (int row = 0; row < 32; ++row) BOOST_TEST(values[static_cast<std::size_t>(row)] == row);
}

// Codes of dlpack.h: kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4.
BOOST_AUTO_TEST_CASE(every_element_type_has_its_code_and_bits) {
  const std::vector<std::tuple<type, int, int>> expected{
      {type::int8, 0, 8},     {type::uint8, 1, 8},     {type::int16, 0, 16},   {type::uint16, 1, 16},
      {type::int32, 0, 32},   {type::uint32, 1, 32},   {type::int64, 0, 64},   {type::uint64, 1, 64},
      {type::float16, 2, 16}, {type::bfloat16, 4, 16}, {type::float32, 2, 32}, {type::float64, 2, 64}};
  for (const auto& [element, code, bits] : expected) {
    const dlpack::data_type found = dlpack::data_type_of(element);
    BOOST_TEST(+found.code == code);
    BOOST_TEST(+found.bits == bits);
    BOOST_TEST(found.lanes == 1);
  }
}

BOOST_DATA_TEST_CASE(tensors_of_one_batch_share_its_lease, every_device, name) {
  const small_file file(1000, 64);
  auto pipeline = build(file, gpu::device::parse(name));
  auto range = pipeline.epochs(0, 1);
  pp::shared_batch first(range.next());
  auto image = first.tensor("image");
  auto label = first.tensor_versioned("label");
  first.reset();
  pp::batch second = range.next();
  image.reset();
  BOOST_CHECK_THROW(range.next(), pp::error);  // the label alone still holds it
  label.reset();
  BOOST_TEST(range.next().index() == 2U);
}

BOOST_DATA_TEST_CASE(a_tensor_keeps_its_rows_while_later_batches_pass, every_device, name) {
  const small_file file(3000, 64);
  auto pipeline = build(file, gpu::device::parse(name));
  dlpack::managed_tensor_ptr kept;
  std::int32_t first = 0;
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    if (kept) {
      const auto label = fetch<std::int32_t>(kept->tensor, batch.stream(), 1);
      BOOST_REQUIRE_EQUAL(label[0], first);
      first += 32;
    }
    kept = pp::shared_batch(std::move(batch)).tensor("label");
  }
  BOOST_TEST(first == 2976);
}

BOOST_DATA_TEST_CASE(a_tensor_outlives_its_pipeline, every_device, name) {
  const small_file file(100, 16);
  const auto device = gpu::device::parse(name);
  dlpack::managed_tensor_versioned_ptr kept;
  {
    auto pipeline = build(file, device);
    auto range = pipeline.epochs(0, 1);
    kept = pp::shared_batch(range.next()).tensor_versioned("label");
  }
  const gpu::stream stream(device);
  BOOST_TEST(fetch<std::int32_t>(kept->tensor, stream, 32)[31] == 31);
}

BOOST_AUTO_TEST_CASE(there_is_nothing_to_share_at_the_end_of_a_run) {
  const small_file file(100, 16);
  auto pipeline = build(file, gpu::device::host());
  auto range = pipeline.epochs(0, 1);
  std::size_t rows = 0;
  while (const pp::shared_batch batch{range.next()}) rows += batch.rows().rows();
  BOOST_TEST(rows == 100U);
}

BOOST_DATA_TEST_CASE(a_tensor_may_be_dropped_on_another_thread, every_device, name) {
  const small_file file(2000, 64);
  auto pipeline = build(file, gpu::device::parse(name));
  std::size_t batches = 0;
  for (pp::batch& batch : pipeline.epochs(0, 2)) {
    auto tensor = pp::shared_batch(std::move(batch)).tensor("wide");
    std::thread([dropped = std::move(tensor)]() mutable { dropped.reset(); }).join();
    ++batches;
  }
  BOOST_TEST(batches == 126U);
}

BOOST_DATA_TEST_CASE(a_tensor_is_ordered_with_the_stream_it_is_exported_for, every_device, name) {
  const small_file file(5000, 64);
  const auto device = gpu::device::parse(name);
  auto pipeline = build(file, device);
  const gpu::stream other(device);
  std::vector<std::int32_t> labels(5000);
  std::size_t at = 0;
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    const auto rows = batch.rows();
    const auto tensor = pp::shared_batch(std::move(batch)).tensor("label", other.ref());
    gpu::copy(other, labels.data() + at, tensor->tensor.data, rows * 4);
    at += rows;
  }
  other.synchronize();
  for (std::size_t i = 0; i < labels.size(); ++i) BOOST_REQUIRE_EQUAL(labels[i], static_cast<std::int32_t>(i));
}

BOOST_DATA_TEST_CASE(the_mask_of_a_padded_batch_is_a_read_only_tensor, every_device, name) {
  const small_file file(40, 16);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .last = pp::last_batch::pad}))
                      .build(gpu::device::parse(name), small);
  auto range = pipeline.epochs(0, 1);
  range.next();
  const pp::shared_batch batch(range.next());
  const auto mask = batch.mask_tensor_versioned();
  BOOST_TEST(mask->flags == 1U);
  BOOST_TEST(shape_of(mask->tensor) == (std::vector<std::int64_t>{32}));
  const auto values = fetch<std::uint8_t>(mask->tensor, batch.rows().stream(), 32);
  for (std::size_t row = 0; row < 32; ++row) BOOST_TEST(+values[row] == (row < 8 ? 1 : 0));
  BOOST_TEST(batch.mask_tensor()->tensor.data == mask->tensor.data);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_refused_by_name) {
  const small_file file(100, 16);
  auto pipeline = build(file, gpu::device::host());
  auto range = pipeline.epochs(0, 1);
  pp::shared_batch batch(range.next());
  BOOST_CHECK_EXCEPTION(batch.tensor("labels"), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()).find("wide, label, image") != std::string::npos;
  });
  BOOST_CHECK_EXCEPTION(batch.mask_tensor(), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()).find("no mask") != std::string::npos; });
  batch.reset();
  BOOST_CHECK_EXCEPTION(batch.tensor("label"), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()) == "there is no batch: it was given back, or the run has ended";
  });
}

BOOST_AUTO_TEST_SUITE_END()
