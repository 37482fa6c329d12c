#include "wiring.hpp"

#include <boost/test/unit_test.hpp>

namespace pp = penstock::pipeline;
using penstock::type;

namespace {

pp::description::parts parts_of(pp::source from) { return {std::move(from), pp::sequential{}, {}, {}, {}, {}, {}}; }

pp::source two() {
  return pp::source{}.field("image", {{"a.h5", "/x"}}, {.as = type::float32}).field("label", {{"a.h5", "/y"}});
}

std::vector<pp::stored_field> stored() {
  std::vector<pp::stored_field> fields(2);
  fields[0].element.element = type::uint8;
  fields[0].row_shape = {28, 28};
  fields[1].element.element = type::int32;
  fields[1].element.swapped = true;
  return fields;
}

const auto nothing = [](const pp::block&) {};

}  // namespace

BOOST_AUTO_TEST_SUITE(wiring)

BOOST_AUTO_TEST_CASE(a_batch_has_the_fields_of_the_source_in_their_declared_types) {
  const pp::wiring w = pp::wire(parts_of(two()), stored(), false);
  BOOST_REQUIRE_EQUAL(w.batch.size(), 2u);
  BOOST_TEST(w.device[w.batch[0]].name == "image");
  BOOST_TEST((w.device[w.batch[0]].element == type::float32));
  BOOST_TEST(w.device[w.batch[0]].row_bytes() == 784u * 4);
  BOOST_TEST(!w.conversions[0].plain);
  BOOST_TEST((w.device[w.batch[1]].element == type::int32));
  BOOST_TEST(!w.conversions[1].plain);  // the other byte order
  BOOST_TEST(w.host_row_ids == pp::none);
}

BOOST_AUTO_TEST_CASE(on_the_host_the_other_byte_order_is_swapped_while_reading) {
  const pp::wiring w = pp::wire(parts_of(two()), stored(), true);
  BOOST_TEST(w.swapped_by_reader);
  BOOST_TEST(w.conversions[1].plain);  // it lands where it belongs
  BOOST_TEST(!pp::wire(parts_of(two()), stored(), false).swapped_by_reader);
}

BOOST_AUTO_TEST_CASE(readers_convert_what_is_small_beside_fields_that_stay_as_they_are) {
  auto fields = stored();
  const auto from = pp::source{}.field("image", {{"a.h5", "/x"}}).field("label", {{"a.h5", "/y"}}, {.as = type::int64});
  pp::wiring w = pp::wire(parts_of(from), fields, false);  // 784 bytes and 8: a 99th
  BOOST_TEST(!w.conversions[1].plain);
  pp::let_readers_convert(w);
  BOOST_REQUIRE_EQUAL(w.read_conversions.size(), 1u);
  const pp::host_field &stored_label = w.host[w.read_conversions[0].from], &label = w.host[w.read_conversions[0].to];
  BOOST_TEST((stored_label.element == type::int32));
  BOOST_TEST(stored_label.swapped);
  BOOST_TEST(stored_label.reader == 1u);
  BOOST_TEST(!stored_label.travels);
  BOOST_TEST((label.element == type::int64));
  BOOST_TEST(!label.swapped);
  BOOST_TEST(label.reader == pp::none);
  BOOST_TEST(label.travels);
  BOOST_TEST(w.conversions[1].from == w.read_conversions[0].to);
  BOOST_TEST(w.conversions[1].plain);

  fields[0].row_shape = {22, 22};  // 484 bytes and 8: a 61st is not small
  w = pp::wire(parts_of(from), fields, false);
  pp::let_readers_convert(w);
  BOOST_TEST(w.read_conversions.empty());

  w = pp::wire(parts_of(two()), stored(), false);  // the images need a kernel in any case
  pp::let_readers_convert(w);
  BOOST_TEST(w.read_conversions.empty());
}

BOOST_AUTO_TEST_CASE(a_host_transform_replaces_and_adds_fields_by_name) {
  auto parts = parts_of(two());
  parts.host_transforms.push_back(pp::transform_host(
      {.name = "crop", .outputs = {{"image", type::uint8, {24, 24}}, {"weight", type::float32, {}}}}, nothing));
  const pp::wiring w = pp::wire(parts, stored(), false);
  BOOST_REQUIRE_EQUAL(w.batch.size(), 3u);
  BOOST_TEST(w.device[w.batch[0]].row_bytes() == 24u * 24 * 4);  // the cast asked for still applies
  BOOST_TEST(w.device[w.batch[2]].name == "weight");
  BOOST_TEST(!w.host[0].travels);
  BOOST_TEST(w.host_row_ids != pp::none);
  BOOST_TEST(w.device_row_ids == pp::none);
  const auto& step = w.host_transforms.front();
  BOOST_TEST(step.inputs.size() == 2u);
  BOOST_TEST(step.outputs.size() == 3u);
  BOOST_TEST(step.inputs[1] == step.outputs[1]);  // the label is left where it is
  BOOST_TEST(step.inputs[0] != step.outputs[0]);
}

BOOST_AUTO_TEST_CASE(a_device_transform_sees_row_numbers_and_its_inputs_are_not_in_rings) {
  auto parts = parts_of(two());
  parts.device_transforms.push_back(
      pp::transform_device({.name = "flatten", .outputs = {{"image", type::float32, {784}}}}, nothing));
  const pp::wiring w = pp::wire(parts, stored(), false);
  BOOST_REQUIRE(w.device_row_ids != pp::none);
  BOOST_TEST(!w.device[w.device_row_ids].in_ring);
  BOOST_TEST(!w.device[w.device_transforms[0].inputs[0]].in_ring);
  BOOST_TEST(w.device[w.device_transforms[0].outputs[0]].in_ring);
  BOOST_REQUIRE_EQUAL(w.batch.size(), 2u);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_by_name) {
  BOOST_CHECK_THROW(pp::source{}.field("", {{"a.h5", "/x"}}), std::invalid_argument);
  BOOST_CHECK_THROW(two().field("label", {{"a.h5", "/z"}}), std::invalid_argument);
  BOOST_CHECK_THROW(pp::source{}.field("x", {}), std::invalid_argument);
  BOOST_CHECK_THROW(pp::read(pp::source{}), std::invalid_argument);
  BOOST_CHECK_THROW(pp::transform_host({.name = "empty"}, nullptr), std::invalid_argument);
  BOOST_CHECK_THROW(pp::read(two()) | pp::batched({.rows = 0}), std::invalid_argument);
  auto large = parts_of(two());
  large.host_transforms.push_back(pp::transform_host(
      {.name = "blow up", .outputs = {{"image", type::float64, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}}},
      nothing));
  BOOST_CHECK_EXCEPTION(pp::wire(large, stored(), false), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()) == "transform 'blow up' declares field 'image' with rows of more than 1.00 TiB";
  });
  const auto odd = parts_of(pp::source{}.field("image", {{"a.h5", "/x"}}, {.as = type::uint16}));
  const std::vector<pp::stored_field> image{stored().front()};
  BOOST_CHECK_EXCEPTION(pp::wire(odd, image, false), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()).find("field 'image'") == 0; });
}

BOOST_AUTO_TEST_SUITE_END()
