#include "../support/damaged_chunks.hpp"
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {
const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
}  // namespace

BOOST_AUTO_TEST_SUITE(row_identities)

// Three datasets of 100, 60 and 40 rows one after another: row 100 is row 0 of the second, row 160 of the third.
BOOST_DATA_TEST_CASE(a_batch_says_in_which_dataset_its_rows_are_stored_and_where, every_device, name) {
  const small_file a(100, 64), b(60, 64), c(40, 64);
  auto segments = a.at("/label");
  for (const auto* more : {&b, &c}) segments.push_back(more->at("/label").front());
  auto pipeline =
      (pp::read(pp::source{}.field("label", segments), pp::shuffled{.seed = 1, .run_rows = 7, .pool_rows = 80}) |
       pp::batched({.rows = 48, .last = pp::last_batch::pad}))
          .build(gpu::device::parse(name), small);
  std::size_t rows = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 1)) {
    const auto ids = batch.row_ids();
    const auto places = batch.row_identities("label");
    const auto labels = penstock::test::fetch<std::int32_t>(batch, "label");
    BOOST_REQUIRE_EQUAL(places.size(), batch.valid_rows());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint64_t segment = ids[i] < 100 ? 0 : ids[i] < 160 ? 1 : 2;
      const std::uint64_t first = segment == 0 ? 0 : segment == 1 ? 100 : 160;
      BOOST_REQUIRE((places[i] == pp::row_identity{segment, ids[i] - first}));
      BOOST_REQUIRE_EQUAL(labels[i], static_cast<std::int32_t>(places[i].index));
      BOOST_REQUIRE_EQUAL(pipeline.place_of("label", ids[i])->segment, segment);
    }
    rows += places.size();
  }
  BOOST_TEST(rows == 200u);
}

BOOST_AUTO_TEST_CASE(a_field_that_the_source_does_not_have_is_refused) {
  const small_file file(100, 64);
  auto pipeline = pp::read(file.plain()).build(gpu::device::host(), small);
  for (const pp::batch& batch : pipeline.epochs(0, 1))
    BOOST_CHECK_EXCEPTION(batch.row_identities("image"), std::invalid_argument, [](const auto& e) {
      return std::string(e.what()).find("field 'image', which the source does not have") != std::string::npos;
    });
}

// Texts of h5py's: sorted they are ant, bee, cat; without the first dataset bee, cat.
BOOST_AUTO_TEST_CASE(codes_of_texts_have_names_which_are_those_of_one_source) {
  const small_file file(6, 64);
  penstock::test::run_python("import h5py\nwith h5py.File('" + file.path().string() +
                             "', 'r+') as f:\n"
                             "    for name, texts in ('a', ['cat', 'ant', 'bee']), ('b', ['cat', 'bee', 'bee']):\n"
                             "        f.create_dataset(name, data=texts, dtype=h5py.string_dtype())");
  auto both = file.at("/a");
  both.push_back(file.at("/b").front());
  using names = std::vector<std::string>;
  const names all{"ant", "bee", "cat"}, some{"bee", "cat"}, none{};
  const auto build = [](const pp::source& source) { return pp::read(source).build(gpu::device::host(), small); };
  const auto one = build(pp::source{}.field("text", both).field("label", file.at("/label")));
  BOOST_TEST(one.class_names("text") == all, boost::test_tools::per_element());
  BOOST_TEST(one.class_names("label") == none, boost::test_tools::per_element());
  BOOST_TEST(one.class_names("other") == none, boost::test_tools::per_element());
  const auto other = build(pp::source{}.field("text", file.at("/b")));
  BOOST_TEST(other.class_names("text") == some, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
