// Texts that decide which rows come. In a split by groups, the part that a row is in depends on its text alone, however
// that is stored and whichever others there are.

#include <penstock/pipeline/description.hpp>
#include <penstock/pipeline/mixed.hpp>
#include <penstock/pipeline/selection.hpp>

#include "../support/damaged_chunks.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;
namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;

namespace {

using texts = std::vector<std::string>;

std::string as_python(const texts& all) {
  std::string list = "[";
  for (const std::string& one : all) list += "'" + one + "', ";
  return list + "]";
}

/// /group of `type`, an expression of h5py's. Gone with the object.
class text_file {
 public:
  text_file(const char* name, const texts& all, const std::string& type = "h5py.string_dtype()")
      : all_(all),
        path_(fs::temp_directory_path() / ("penstock-text-groups-" + std::to_string(::getpid()) + "-" + name + ".h5")) {
    penstock::test::run_python(
        "import h5py, numpy\n"
        "def padded_by_spaces(length):\n"
        "  type = h5py.h5t.C_S1.copy()\n"
        "  type.set_size(length)\n"
        "  type.set_strpad(h5py.h5t.STR_SPACEPAD)\n"
        "  return h5py.Datatype(type)\n"
        "with h5py.File('" +
        path_.string() + "', 'w') as f:\n  all = " + as_python(all) + "\n  type = " + type +
        "\n"
        "  d = f.create_dataset('group', (len(all),), dtype=type)\n"
        "  d[:] = all if h5py.check_string_dtype(d.dtype).length is None else numpy.array(all, 'S')\n");
  }
  ~text_file() { fs::remove(path_); }
  text_file(const text_file&) = delete;
  text_file& operator=(const text_file&) = delete;

  pp::source source() const { return pp::source{}.field("group", penstock::io::datasets(path_.string(), "/group")); }
  std::string name() const { return path_.filename().string(); }
  const std::string& text(std::uint64_t row) const { return all_[row]; }

 private:
  texts all_;
  fs::path path_;
};

std::vector<std::uint64_t> rows_of(const pp::source& from) {
  const auto opened = pp::read(from).open();
  std::vector<std::uint64_t> rows;
  for (std::uint64_t n = 0; n < opened.rows(); ++n) rows.push_back(opened.row_order().row(0, n));
  return rows;
}

pp::split by_group(std::uint64_t seed) { return {.validation = 0.5, .seed = seed, .group = "group"}; }

/// The different texts of the validation part.
std::set<std::string> validated(const text_file& file, std::uint64_t seed) {
  std::set<std::string> found;
  auto from = file.source();
  for (const std::uint64_t row : rows_of(from.select(pp::validation_part(by_group(seed)))))
    found.insert(file.text(row));
  return found;
}

const texts some{"darwin", "bell", "euler of basel", "", "hopper", "curie", "bell", "fermat", "ira", "gauss"};

}  // namespace

BOOST_AUTO_TEST_SUITE(text_groups)

// SplitMix64 of the texts' bytes, in Python.
BOOST_AUTO_TEST_CASE(the_part_of_a_text_is_known_from_its_bytes_and_the_seed) {
  const text_file file("known", some);
  BOOST_TEST(validated(file, 0) == (std::set<std::string>{"bell", "darwin", "euler of basel", "gauss", "ira"}));
  BOOST_TEST(validated(file, 7) == (std::set<std::string>{"", "curie", "darwin", "fermat", "gauss", "hopper", "ira"}));
}

BOOST_AUTO_TEST_CASE(a_new_text_moves_no_other_one) {
  texts more{"ada"};
  more.insert(more.end(), some.begin(), some.end());
  const text_file before("before", some), after("after", more);
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    auto expected = validated(before, seed), found = validated(after, seed);
    found.erase("ada");
    BOOST_TEST(found == expected);
  }
}

BOOST_AUTO_TEST_CASE(how_texts_are_stored_does_not_matter) {
  const text_file variable("variable", some), utf8("utf8", some, "h5py.string_dtype('ascii')");
  const text_file zeros("zeros", some, "'S14'"), longer("longer", some, "'S40'");
  const text_file spaces("spaces", some, "padded_by_spaces(20)");
  for (std::uint64_t seed = 0; seed < 16; ++seed)
    for (const text_file* other : {&utf8, &zeros, &longer, &spaces})
      BOOST_TEST(validated(*other, seed) == validated(variable, seed));
}

BOOST_AUTO_TEST_CASE(a_group_is_on_one_side_in_all_sources_of_a_mix) {
  const texts others{"zeno", "bell", "hopper", "ada", "gauss", "bell", "fermat"};
  const text_file first("first", some), second("second", others);
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const auto rows = [&](bool validation) {
      const auto part = validation ? pp::validation_part(by_group(seed)) : pp::training_part(by_group(seed));
      std::set<std::string> found;
      auto a = first.source(), b = second.source();
      for (const auto row : rows_of(pp::mixed({{a.select(part), 0.5}, {b.select(part), 0.5}}, {.rows = 100})))
        found.insert(row < some.size() ? first.text(row) : second.text(row - some.size()));
      return found;
    };
    const auto training = rows(false), validation = rows(true);
    for (const auto& one : validation) BOOST_TEST(!training.contains(one), one);
  }
}

BOOST_AUTO_TEST_CASE(rows_of_several_texts_are_groups_of_all_of_them_in_turn) {
  const auto path = fs::temp_directory_path() / ("penstock-text-groups-" + std::to_string(::getpid()) + "-rows.h5");
  penstock::test::run_python(
      "import h5py, numpy\nall = [['a', 'bc'], ['ab', 'c'], ['bc', 'a'], ['a', 'bc']]\n"
      "with h5py.File('" +
      path.string() +
      "', 'w') as f:\n  f.create_dataset('variable', data=all, dtype=h5py.string_dtype())\n"
      "  f['fixed'] = numpy.array(all, 'S5')\n");
  const auto validated_rows = [&](const std::string& dataset, std::uint64_t seed) {
    auto from = pp::source{}.field("group", penstock::io::datasets(path.string(), dataset));
    const auto rows = rows_of(from.select(pp::validation_part(by_group(seed))));
    return std::set<std::uint64_t>(rows.begin(), rows.end());
  };
  std::size_t others_apart = 0, turned_apart = 0;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const auto found = validated_rows("/variable", seed);
    BOOST_TEST(found == validated_rows("/fixed", seed));
    BOOST_TEST(found.contains(0) == found.contains(3));
    others_apart += found.contains(0) != found.contains(1);
    turned_apart += found.contains(0) != found.contains(2);
  }
  BOOST_TEST(others_apart > 0u);
  BOOST_TEST(turned_apart > 0u);
  fs::remove(path);
}

BOOST_AUTO_TEST_CASE(texts_are_no_weights_and_no_numbers_of_a_condition) {
  for (const char* type : {"h5py.string_dtype()", "'S14'"}) {
    const text_file file("numbers", some, type);
    const auto refused = [&](const pp::description& what) {
      const auto names_all = [&](const std::exception& e) {
        const std::string said = e.what();
        const bool all = said.find(file.name()) != std::string::npos && said.find("/group") != std::string::npos;
        return all && said.find("text") != std::string::npos;
      };
      BOOST_CHECK_EXCEPTION(what.open(), std::exception, names_all);
    };
    refused(pp::read(file.source(), pp::weighted{.field = "group"}));
    refused(pp::read(file.source().select(pp::where("group", [](double value) { return value < 5; }))));
    const auto classes = pp::read(file.source(), pp::class_balanced{.field = "group"}).open();
    BOOST_TEST(classes.rows() == some.size());
    BOOST_TEST(classes.price("group").mixing.value() > 0.5);
  }
  const text_file file("sentence", some);
  BOOST_CHECK_EXCEPTION(
      pp::read(file.source(), pp::weighted{.field = "group"}).open(), std::invalid_argument, [&](const auto& e) {
        return std::string(e.what()).starts_with("rows are drawn by the weight in field 'group', and ");
      });
}

BOOST_AUTO_TEST_CASE(a_state_of_other_rows_is_refused) {
  const text_file file("state", some);
  const auto build = [&](pp::selection which) {
    auto from = file.source();
    return pp::read(from.select(std::move(which))).build(gpu::device::host(), gpu::budget{.host_bytes = 64 << 20});
  };
  const auto split = build(pp::validation_part(by_group(0)));
  // As many rows, and others: the split takes rows 0, 1, 2, 6, 8 and 9 (of the texts above).
  const std::string state = build(pp::selection(std::vector<pp::extent>{{0, split.rows()}})).state({0, 0});
  BOOST_CHECK_EXCEPTION(split.resume_at(state), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()).find("its selected is") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
