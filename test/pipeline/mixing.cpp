#include "order_rows.hpp"
#include "row_supply.hpp"
#include "small_file.hpp"

#include <penstock/pipeline/mixed.hpp>
#include <penstock/pipeline/price.hpp>

#include <cmath>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

/// 10 classes of 2000 rows each, sorted by class.
std::vector<std::uint32_t> sorted_classes() {
  std::vector<std::uint32_t> classes(20'000);
  for (std::uint32_t row = 0; row < 20'000; ++row) classes[row] = row / 2000;
  return classes;
}

double mixing_of(const pp::order_options& how, std::uint64_t batch_rows = 100) {
  return pp::mixing(pp::order(how, {.rows = 20'000, .row_bytes = 4096}), sorted_classes(), batch_rows);
}

const auto near = [](double tolerance) { return boost::test_tools::tolerance(tolerance); };

}  // namespace

BOOST_AUTO_TEST_SUITE(mixing)

// Two rows of four, two of each class: both classes with probability 2/3, and then the entropy is ln 2.
BOOST_AUTO_TEST_CASE(the_entropy_of_a_uniform_shuffle_of_four_rows_is_known) {
  BOOST_TEST(pp::uniform_entropy(std::vector<std::uint64_t>{2, 2}, 2) == 2.0 / 3 * std::log(2), near(1e-12));
  // Three rows of six of two classes of 3 and 3: k = 1 or 2 of a class with probability 18/20, entropy of (1/3, 2/3).
  const double third = -std::log(1.0 / 3) / 3 - 2 * std::log(2.0 / 3) / 3;
  BOOST_TEST(pp::uniform_entropy(std::vector<std::uint64_t>{3, 3}, 3) == 0.9 * third, near(1e-12));
  // All rows: the classes' own parts, 1/4 and 3/4.
  BOOST_TEST(pp::uniform_entropy(std::vector<std::uint64_t>{1, 3}, 4) == -std::log(0.25) / 4 - 0.75 * std::log(0.75),
             near(1e-12));
  BOOST_TEST(pp::uniform_entropy(std::vector<std::uint64_t>{7}, 3) == 0.0);
}

// -sum over classes of E[k/n ln(k/n)] in exact fractions: math.comb and fractions.Fraction of Python.
BOOST_AUTO_TEST_CASE(the_entropy_of_a_uniform_shuffle_agrees_with_exact_fractions) {
  const std::vector<std::uint64_t> counts(10, 2000);
  BOOST_TEST(pp::uniform_entropy(counts, 100) == 2.2568905252307365, near(1e-8));
  BOOST_TEST(pp::uniform_entropy(std::vector<std::uint64_t>{1'000'000, 50'000, 17}, 4096) == 0.191469445921017,
             near(1e-8));
}

BOOST_AUTO_TEST_CASE(a_sorted_file_is_not_mixed_in_sequence_and_wholly_mixed_at_random) {
  BOOST_TEST(mixing_of(pp::sequential{}) == 0.0);
  BOOST_TEST(mixing_of(pp::random{1}) == 1.0, near(0.01));
  // Classes that take turns: each batch of two has both, where a uniform shuffle has them two times in three.
  const pp::order as_it_lies(pp::sequential{}, {.rows = 4, .row_bytes = 8});
  BOOST_TEST(pp::mixing(as_it_lies, std::vector<std::uint32_t>{0, 1, 0, 1}, 2) == 1.5, near(1e-12));
  BOOST_TEST(pp::mixing(as_it_lies, std::vector<std::uint32_t>{0, 0, 1, 1}, 2) == 0.0);
  BOOST_TEST(pp::mixing(as_it_lies, std::vector<std::uint32_t>{5, 5, 5, 5}, 2) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_shuffled_order_mixes_better_the_more_runs_its_pool_holds) {
  const double few = mixing_of(pp::shuffled{.seed = 1, .run_rows = 100, .pool_rows = 200});
  const double some = mixing_of(pp::shuffled{.seed = 1, .run_rows = 100, .pool_rows = 800});
  const double many = mixing_of(pp::shuffled{.seed = 1, .run_rows = 16, .pool_rows = 3200});
  // Two runs in a pool are of two classes at most: ln 2 of about ln 10, and mostly of two.
  BOOST_TEST(few > 0.2);
  BOOST_TEST(few < std::log(2.0) / std::log(10.0) * 1.1);
  BOOST_TEST(some > few + 0.2);
  BOOST_TEST(many > some);
  BOOST_TEST(many > 0.95);
  BOOST_TEST(many < 1.02);
}

BOOST_AUTO_TEST_CASE(the_default_order_mixes_a_sorted_file_of_small_chunks) {
  // 4 KiB rows in chunks of 16 (64 KiB): runs of four chunks, a pool of 32 of them.
  const double measured = pp::mixing(
      pp::order(pp::shuffled{.seed = 1}, {.rows = 20'000, .row_bytes = 4096, .chunk_rows = 16}), sorted_classes(), 256);
  BOOST_TEST_MESSAGE("mixing of the default order on a sorted file: " << measured);
  BOOST_TEST(measured > 0.85);
  BOOST_TEST(measured < 1.0);
}

BOOST_AUTO_TEST_CASE(rows_that_do_not_take_part_are_in_no_class) {
  auto classes = sorted_classes();
  for (std::uint32_t row = 0; row < 20'000; ++row)
    if (classes[row] > 1) classes[row] = pp::no_class;
  // Of the two classes that are left, sorted rows give batches of one.
  auto only = std::make_shared<pp::row_set>(20'000);
  only->keep_only({{0, 4000}});
  only->count();
  const pp::order sorted(pp::sequential{}, {.rows = 20'000, .row_bytes = 8}, only);
  BOOST_TEST(pp::mixing(sorted, classes, 100) == 0.0);
  const pp::order mixed(pp::random{1}, {.rows = 20'000, .row_bytes = 8}, only);
  BOOST_TEST(pp::mixing(mixed, classes, 100) == 1.0, near(0.01));
}

BOOST_AUTO_TEST_CASE(the_price_of_a_mix_says_how_many_batches_are_of_one_source) {
  const small_file a(1024, 64), b(1024, 64);
  const auto some = b.plain().select(pp::selection(std::vector<pp::extent>{{300, 512}}));
  const auto price_of = [&](const pp::shuffled& how) {
    return (pp::read(pp::mixed({{a.plain(), 1}, {some, 1}}), how) | pp::batched({.rows = 64})).open().price();
  };
  // A pool is a run, and a run is of one source.
  const auto of_runs = price_of({.seed = 1, .run_rows = 128, .pool_rows = 128});
  BOOST_TEST(of_runs.batches_of_one_source.value() == 1.0);
  BOOST_TEST(to_text(of_runs).find("100.0 % of the batches hold rows of one source alone") != std::string::npos);
  const auto chosen = price_of({.seed = 1});
  BOOST_TEST(chosen.batches_of_one_source.value() == 0.0);
  BOOST_TEST(to_text(chosen).find("of one source") == std::string::npos);
}

// By hand: so many rows, each of which decodes the chunk that it is in, or is read by itself.
BOOST_AUTO_TEST_CASE(the_price_goes_by_the_chunks_of_each_file) {
  const small_file tall(2048, 1024, 1), small(8192, 8, 1), plain(8192, 0);
  const auto price_of = [](const small_file& first, const small_file& then, const pp::order_options& how) {
    auto places = first.at("/wide");
    const auto more = then.at("/wide");
    places.insert(places.end(), more.begin(), more.end());
    return pp::read(pp::source{}.field("wide", places), how).open().price().read_amplification;
  };
  // Of ten rows two are of the tall chunks; one in ten comes after one of the same chunk.
  const double with_small = (2048 * 0.9 * 1024 + 8192 * 8) / 10240;
  BOOST_TEST(price_of(tall, small, pp::random{1}) == with_small, near(0.05));
  BOOST_TEST(price_of(small, tall, pp::random{1}) == with_small, near(0.05));
  // Rows that lie by themselves leave the decoded chunk where it is: every other tall row is of the other one.
  BOOST_TEST(price_of(tall, plain, pp::random{1}) == (2048 * 0.5 * 1024 + 8192) / 10240, near(0.05));
  BOOST_TEST(price_of(tall, plain, pp::sequential{}) == 1.0);
}

BOOST_AUTO_TEST_CASE(the_pool_holds_rows_as_host_transforms_make_them) {
  const small_file file(4096, 64);
  const pp::shuffled how{.seed = 1, .run_rows = 64, .pool_rows = 1024};
  const auto pool_of = [&](pp::description d) {
    return (std::move(d) | pp::batched({.rows = 64})).open().price().pool_bytes;
  };
  const auto label = [&] { return pp::read(pp::source{}.field("label", file.at("/label")), how); };
  const std::size_t before = pool_of(label());
  const auto wider =
      label() | pp::transform_host({.outputs = {{"wide", penstock::type::float32, {100}}}}, [](const pp::block&) {});
  BOOST_TEST(before == 1024u * 4);
  BOOST_TEST(pool_of(wider) == 1024u * (4 + 100 * 4));
}

BOOST_AUTO_TEST_CASE(the_price_of_an_order_is_known_before_it_runs) {
  const small_file file(4096, 64, 1);  // an image's chunks are of 42 rows
  const auto price_of = [&](const pp::order_options& how, const std::string& field) {
    return pp::read(pp::source{}.field(field, file.at("/" + field)), how).open().price();
  };
  const pp::shuffled whole{.seed = 1, .run_rows = 64, .pool_rows = 1024},
      half{.seed = 1, .run_rows = 32, .pool_rows = 1024};
  BOOST_TEST(price_of(pp::sequential{}, "wide").read_amplification == 1.0);
  BOOST_TEST(price_of(pp::sequential{}, "wide").pool_bytes == 0u);
  BOOST_TEST(price_of(whole, "wide").read_amplification == 1.0);
  BOOST_TEST(price_of(whole, "wide").pool_bytes == 1024u * 33 * 4);
  BOOST_TEST(price_of(half, "wide").read_amplification == 2.0, near(0.05));  // half of a chunk at a time
  BOOST_TEST(price_of(pp::random{1}, "wide").read_amplification == 64.0, near(0.05));
  BOOST_TEST(price_of(pp::random{1}, "label").read_amplification == 1.0);  // not chunked: rows lie by themselves
  BOOST_TEST(!price_of(whole, "wide").mixing.has_value());
  // A row's label is its number: every batch has as many classes as rows, as under any shuffle.
  const auto labelled = pp::read(file.plain(), pp::sequential{}).open().price("label");
  BOOST_TEST(labelled.mixing.value() == 1.0, near(1e-9));
  BOOST_TEST(to_text(price_of(whole, "wide")).find("holds a pool of 132 KiB") != std::string::npos);
  BOOST_TEST(to_text(price_of(whole, "wide")).find("chunks are decoded so often") == std::string::npos);
  BOOST_TEST(to_text(price_of(pp::random{1}, "wide")).find("chunks are decoded so often") != std::string::npos);
  BOOST_TEST(!price_of(whole, "wide").batches_of_one_source.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
