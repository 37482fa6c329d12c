#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <unistd.h>

#include <algorithm>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::check;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const gpu::budget tight{.device_bytes = 512_KiB, .pinned_bytes = 256_KiB, .host_bytes = 64_MiB};
const auto orders = data::xrange(13);

pp::description described(const small_file& file, int n) {
  const pp::shuffled shuffled{.seed = 3, .run_rows = 20, .pool_rows = 100};
  if (n == 0) return pp::read(file.all());
  if (n == 1) return pp::read(file.all(), shuffled);
  if (n == 2) return pp::read(file.all(), pp::random{.seed = 3});
  if (n == 4) return pp::read(file.all(), pp::weighted{.seed = 3, .field = "label", .rows = 500});
  if (n == 5) return pp::read(file.all(), pp::class_balanced{.seed = 3, .field = "image"});
  // The same file twice: all of it, and a part. A row's values are then known from its number in the file.
  const auto mix = pp::mixed({{file.all(), 0.3}, {file.all().select(pp::training_part({.validation = 0.3})), 0.7}});
  if (n == 6) return pp::read(mix, shuffled);
  if (n == 7) return pp::read(mix, pp::random{.seed = 3});
  const auto one_of_two = pp::sharded({.shards = 6, .rank = 1, .ranks = 2});
  if (n == 8) return pp::read(file.all(), shuffled) | one_of_two;
  if (n == 9) return pp::read(file.all()) | one_of_two;
  if (n == 10) return pp::read(file.all(), pp::random{.seed = 3}) | one_of_two;
  if (n == 11) return pp::read(mix);
  if (n == 12) return pp::read(file.all().select(pp::selection(std::vector<pp::extent>{{40, 300}, {500, 90}})));
  return pp::read(file.all().select(pp::training_part({.validation = 0.3})), shuffled);
}

void fails_with(const pp::pipeline& pipeline, const std::string& state, const std::string& part) {
  BOOST_CHECK_EXCEPTION(pipeline.resume_at(state), std::invalid_argument,
                        [&](const auto& e) { return std::string(e.what()).find(part) != std::string::npos; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(run_states)

BOOST_DATA_TEST_CASE(resuming_after_any_batch_gives_the_rows_of_never_having_stopped, every_device* orders, name, how) {
  const small_file file(701, 64, 1);
  const auto device = gpu::device::parse(name);
  const pp::batch_options batches{.rows = 48,
                                  .last = how >= 8 && how <= 10 ? pp::last_batch::pad : pp::last_batch::keep};
  auto first = (described(file, how) | pp::batched(batches)).build(device, small);
  std::vector<std::string> states{first.state({0, 0})};
  std::vector<std::size_t> seen{0};
  std::vector<std::uint64_t> rows;
  for (const pp::batch& batch : first.epochs(0, 2)) {
    check(batch, rows);
    states.push_back(first.state_after(batch));
    seen.push_back(rows.size());
  }
  // Other budgets, threads and blocks.
  auto second = (described(file, how) | pp::batched(batches) |
                 pp::transport(pp::transport_options{.block_bytes = 3000, .threads = 3}))
                    .build(device, tight);
  for (std::size_t i = 0; i + 1 < states.size(); ++i) {
    const pp::run_position at = second.resume_at(states[i]);
    const auto rest = consume(second, at.epoch, 2 - at.epoch, {.first_batch = at.batch});
    BOOST_REQUIRE(rest ==
                  (std::vector<std::uint64_t>(rows.begin() + static_cast<std::ptrdiff_t>(seen[i]), rows.end())));
  }
  BOOST_TEST((second.resume_at(states.back()) == pp::run_position{2, 0}));
}

BOOST_AUTO_TEST_CASE(a_state_of_rows_that_were_drawn_by_other_weights_is_refused) {
  const small_file file(300, 64);
  const auto build = [&](double last) {
    std::vector<double> weights(300, 1);
    weights.back() = last;
    return pp::read(file.all(), pp::weighted{.seed = 3, .weights = weights}).build(gpu::device::host(), small);
  };
  fails_with(build(2), build(1).state({0, 1}), "its drawn_by is");
  BOOST_TEST((build(2).resume_at(build(2).state({0, 1})) == pp::run_position{0, 1}));
}

BOOST_AUTO_TEST_CASE(a_state_is_a_few_hundred_bytes) {
  const small_file file(701, 64);
  const auto pipeline = (described(file, 3) | pp::batched({.rows = 48})).build(gpu::device::host(), small);
  BOOST_TEST(pipeline.state({1234567, 89}).size() < 500u);
}

BOOST_AUTO_TEST_CASE(the_folder_of_the_files_does_not_matter) {
  const small_file file(300, 64);
  const auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 48})).build(gpu::device::host(), small);
  const auto elsewhere = std::filesystem::temp_directory_path() / "penstock-moved" / file.path().filename();
  std::filesystem::create_directories(elsewhere.parent_path());
  std::filesystem::copy_file(file.path(), elsewhere, std::filesystem::copy_options::overwrite_existing);
  const auto at = [&](const char* name) { return penstock::io::datasets(elsewhere.string(), name); };
  const auto moved =
      (pp::read(pp::source{}.field("wide", at("/wide")).field("label", at("/label"))) | pp::batched({.rows = 48}))
          .build(gpu::device::host(), small);
  BOOST_TEST((moved.resume_at(pipeline.state({2, 1})) == pp::run_position{2, 1}));
  std::filesystem::remove_all(elsewhere.parent_path());
}

BOOST_AUTO_TEST_CASE(a_state_of_another_run_is_refused_with_both_sides) {
  const small_file file(300, 64), longer(301, 64);
  const auto build = [&](const small_file& from, int how, std::size_t rows) {
    return (described(from, how) | pp::batched({.rows = rows})).build(gpu::device::host(), small);
  };
  const auto pipeline = build(file, 1, 48);
  const std::string state = pipeline.state({0, 3});
  fails_with(build(file, 0, 48), state, "its order is \"shuffled: seed 3");
  fails_with(build(file, 0, 48), state, "this pipeline's \"sequential\"");
  fails_with(build(file, 1, 32), state, "batch_rows is 48, and this pipeline's 32");
  fails_with(build(longer, 1, 48), state,
             "another run: field 'image' reads other files, datasets, rows or a type than in the state");
  fails_with(build(file, 3, 48), state, "another run");
  fails_with(pipeline, build(file, 3, 48).state({0, 0}), "another run");
  fails_with(pipeline, "", "not the state of a run");
  fails_with(pipeline, "{\"epoch\": 1}", "not the state of a run");
  fails_with(pipeline, state.substr(0, state.size() / 2), "not the state of a run");
  fails_with(pipeline, R"({"penstock_state": 2, "place": [0, 3]})", "has format 2, and this version of Penstock reads");
}

BOOST_AUTO_TEST_CASE(a_state_that_nests_without_end_or_is_too_long_is_refused_in_a_short_sentence) {
  const small_file file(300, 64);
  const auto pipeline = (described(file, 1) | pp::batched({.rows = 48})).build(gpu::device::host(), small);
  const auto refused = [&](const std::string& state, const std::string& part) {
    BOOST_CHECK_EXCEPTION(pipeline.resume_at(state), std::invalid_argument, [&](const auto& e) {
      const std::string said = e.what();
      return said.find(part) != std::string::npos && said.size() < 1000;
    });
  };
  constexpr std::size_t deep = 100000;
  const std::string arrays = std::string(deep, '[') + std::string(deep, ']');
  refused(arrays, "not the state of a run");
  refused("{\"penstock_state\":" + arrays + "}", "not the state of a run");
  std::string nested = pipeline.state({0, 3});
  nested.insert(1, "\"epoch\":" + arrays + ",");
  refused(nested, "not the state of a run");
  std::string padded = pipeline.state({0, 3});
  refused(padded.insert(1, std::string((std::size_t{16} << 20) + 1, ' ')), "not the state of a run");
  refused("{\"penstock_state\":\"" + std::string(deep, 'x') + "\"}", "has format");
  std::string long_order = pipeline.state({0, 3});
  const std::string was = "\"order\":\"";
  long_order.insert(long_order.find(was) + was.size(), std::string(deep, 'x'));
  refused(long_order, "its order is");
  // Brackets within texts nest nothing.
  std::string bracketed = pipeline.state({0, 3});
  bracketed.insert(1, "\"note\":\"" + std::string(deep, '[') + "\\\"[\",");
  BOOST_TEST((pipeline.resume_at(bracketed) == pp::run_position{0, 3}));
}

BOOST_AUTO_TEST_CASE(a_refused_state_names_the_field_that_is_another) {
  const small_file file(300, 64);
  const auto build = [&](std::vector<std::pair<std::string, const char*>> fields) {
    pp::source source;
    for (const auto& [name, dataset] : fields) source.field(name, file.at(dataset));
    return pp::read(std::move(source)).build(gpu::device::host(), small);
  };
  const auto pipeline = build({{"a", "/wide"}, {"b", "/label"}});
  const std::string state = pipeline.state({0, 1});
  BOOST_TEST((build({{"b", "/label"}, {"a", "/wide"}}).resume_at(state) == pp::run_position{0, 1}));
  const std::string other = " reads other files, datasets, rows or a type than in the state";
  fails_with(build({{"a", "/wide"}, {"b", "/wide"}}), state, "another run: field 'b'" + other);
  fails_with(build({{"a", "/label"}, {"b", "/wide"}}), state, "another run: field 'a'" + other);
  fails_with(build({{"a", "/wide"}, {"b", "/label"}, {"c", "/wide"}}), state,
             "another run: field 'c' is not in the state");
  fails_with(build({{"a", "/wide"}}), state, "another run: it has a field 'b', and here there is none");
  // Of a state that was changed.
  const auto changed = [&](const std::string& to) {
    std::string text = state;
    const std::size_t at = text.find("\"fields\":") + 9;
    return text.replace(at, text.find('}', at) + 1 - at, to);
  };
  fails_with(pipeline, changed("3"), "another run: its fields is 3, and this pipeline's {");
  fails_with(pipeline, changed("{}"), "another run: field 'a' is not in the state");
}

// States outlive versions: how the source is told in them (by SplitMix64, computed in Python here) stays.
BOOST_AUTO_TEST_CASE(a_whole_dataset_is_told_as_ever) {
  const small_file file(3);
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-told-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(file.path(), folder / "plain.h5");
  const auto wide = penstock::io::datasets((folder / "plain.h5").string(), "/wide");
  const auto state = pp::read(pp::source{}.field("wide", wide)).build(gpu::device::host(), small).state({0, 0});
  BOOST_TEST(state.find(R"("fields":{"wide":"9896af531a8787da"})") != std::string::npos, state);
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(a_state_of_another_part_of_the_same_dataset_is_refused) {
  const small_file file(3);  // its images are 3 x 4: counted along the first axis or the second, there are 3 rows of it
  const auto build = [&](std::size_t row_axis, std::vector<penstock::io::axis_range> region) {
    const penstock::io::location part{file.path(), "/image", row_axis, std::move(region)};
    return pp::read(pp::source{}.field("image", {part})).build(gpu::device::host(), small);
  };
  fails_with(build(1, {}), build(0, {}).state({0, 0}), "field 'image' reads other");
  fails_with(build(0, {{1, 1, 2}}), build(0, {{1, 0, 2}}).state({0, 0}), "field 'image' reads other");
  BOOST_TEST((build(1, {{2, 0, 2}}).resume_at(build(1, {{2, 0, 2}}).state({1, 0})) == pp::run_position{1, 0}));
}

BOOST_AUTO_TEST_CASE(a_state_that_stands_where_no_run_comes_is_refused) {
  const small_file file(300, 64);
  const auto pipeline = (described(file, 1) | pp::batched({.rows = 48})).build(gpu::device::host(), small);
  BOOST_TEST((pipeline.resume_at(pipeline.state({2, 7})) == pp::run_position{2, 7}));  // the end of an epoch of 7
  fails_with(pipeline, pipeline.state({2, 8}), "batch 8 of epoch 2, where no run comes: an epoch has 7 batches");
  fails_with(pipeline, pipeline.state({~std::uint64_t{0}, 0}), "where no run comes");
  std::string drawn = pipeline.state({2, 1});
  drawn.insert(1, "\"drawn_by\":\"0123456789abcdef\",");
  fails_with(pipeline, drawn, "rows are drawn in it");
}

BOOST_AUTO_TEST_CASE(a_state_takes_names_of_any_bytes) {
  const small_file file(300, 64);
  const auto build = [&](const char* name) {
    return (pp::read(pp::source{}.field(name, file.at("/wide"))) | pp::batched({.rows = 48}))
        .build(gpu::device::host(), small);
  };
  const auto latin = build("caf\xe9");
  const std::string state = latin.state({1, 2});
  BOOST_TEST(state.find("\"caf\\\\xe9\"") != std::string::npos, state);
  BOOST_TEST((latin.resume_at(state) == pp::run_position{1, 2}));
  fails_with(build("caf\xe8"), state, "another run");
  const auto utf8 = build("caf\xc3\xa9");
  BOOST_TEST(utf8.state({1, 2}).find("\"caf\xc3\xa9\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
