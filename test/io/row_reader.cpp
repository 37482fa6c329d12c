#include <penstock/io/row_reader.hpp>

#include "made_files.hpp"

#include <penstock/io/error.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <random>
#include <sstream>
#include <thread>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

io::row_reader open(const std::string& file, const std::string& dataset, std::size_t concurrency = 1,
                    std::size_t cache_bytes = 0) {
  io::row_reader reader({{made_folder() / file, dataset}});
  reader.reserve({.concurrency = concurrency, .cache_bytes = cache_bytes});
  return reader;
}

std::vector<std::byte> rows_of(const io::row_reader& reader, std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> out(count * reader.row_bytes(), std::byte{0xa5});
  reader.read(first, count, out);
  return out;
}

/// The whole dataset in pieces of `piece` rows.
std::vector<std::byte> in_pieces(const io::row_reader& reader, std::uint64_t piece) {
  std::vector<std::byte> all(reader.rows() * reader.row_bytes(), std::byte{0xa5});
  for (std::uint64_t first = 0; first < reader.rows(); first += piece) {
    const auto count = std::min(piece, reader.rows() - first);
    reader.read(first, count, std::span(all).subspan(first * reader.row_bytes(), count * reader.row_bytes()));
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(row_reader)

BOOST_AUTO_TEST_CASE(every_dataset_gives_the_bytes_that_were_written_by_the_access_it_allows) {
  for (const auto& d : made_datasets()) {
    BOOST_TEST_CONTEXT(d.name()) {
      const auto reader = open(d.file, d.dataset);
      BOOST_TEST(reader.rows() == d.rows);
      BOOST_TEST(reader.row_bytes() == d.row_bytes);
      const auto& info = reader.segments().front().info;
      BOOST_TEST(io::name_of(info.access) == d.access, io::name_of(info.access) << ": " << info.reason);
      BOOST_TEST((rows_of(reader, 0, d.rows) == bytes_of_file(d.expected)));
    }
  }
}

BOOST_AUTO_TEST_CASE(pieces_of_any_size_join_to_the_whole) {
  for (const auto& d : made_datasets()) {
    const auto reader = open(d.file, d.dataset);
    const auto expected = bytes_of_file(d.expected);
    for (const std::uint64_t piece : {1, 3, 7, 10, 64}) {
      BOOST_TEST_CONTEXT(d.name() << " in pieces of " << piece) { BOOST_TEST((in_pieces(reader, piece) == expected)); }
    }
  }
}

BOOST_AUTO_TEST_CASE(many_threads_read_at_once_any_runs_of_rows) {
  for (const std::string name : {"/gzip/rows", "/all/split", "/plain/split", "/gzip/large", "/scaleoffset"}) {
    const auto found =
        std::find_if(made_datasets().begin(), made_datasets().end(), [&](const auto& d) { return d.dataset == name; });
    BOOST_TEST_REQUIRE((found != made_datasets().end()));
    const auto expected = bytes_of_file(found->expected);
    const auto reader = open(found->file, name, 3);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t);
        for (int n = 0; n < 100; ++n) {
          const auto first = random() % reader.rows();
          const auto count = 1 + random() % (reader.rows() - first);
          const auto got = rows_of(reader, first, count);
          wrong += !std::equal(got.begin(), got.end(),
                               expected.begin() + static_cast<std::ptrdiff_t>(first * reader.row_bytes()));
        }
      });
    for (auto& t : threads) t.join();
    BOOST_TEST(wrong == 0, name);
  }
}

BOOST_AUTO_TEST_CASE(a_pass_in_order_decodes_each_chunk_once) {
  for (const std::string name : {"/gzip/rows", "/gzip/split", "/all/split", "/gzip/columns"}) {
    const auto reader = open("layouts.h5", name);
    in_pieces(reader, 7);
    std::uint64_t chunks = 1;
    const auto& info = reader.segments().front().info;
    for (std::size_t k = 0; k < info.shape.size(); ++k)
      chunks *= (info.shape[k] + info.chunk_shape[k] - 1) / info.chunk_shape[k];
    BOOST_TEST(reader.statistics().chunks_decoded == chunks, name);
  }
}

BOOST_AUTO_TEST_CASE(threads_that_share_chunks_decode_each_once_where_the_cache_suffices) {
  const auto reader = open("layouts.h5", "/gzip/split", 4, std::size_t{1} << 20);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { rows_of(reader, t * 2, 2); });
    for (auto& t : threads) t.join();
  }
  BOOST_TEST(reader.statistics().chunks_decoded == 9);  // rows 0 to 9: 3 x 3 chunks
}

BOOST_AUTO_TEST_CASE(a_field_joins_datasets_of_many_files_and_groups_in_order) {
  const io::row_reader reader(io::datasets((made_folder() / "part*.h5").string(), "/a/x"),
                              {.open_files = 1, .faults = {}});
  BOOST_TEST(reader.rows() == 17);
  BOOST_TEST(reader.segments().size() == 3);
  BOOST_TEST(reader.segments()[2].where.file.filename() == "part10.h5");
  BOOST_TEST(reader.segments()[2].first_row == 5);
  auto expected = bytes_of_file(made_folder() / "part1.bin");
  const auto last = bytes_of_file(made_folder() / "part10.bin");
  expected.insert(expected.end(), last.begin(), last.end());
  BOOST_TEST((rows_of(reader, 0, 17) == expected));
  BOOST_TEST((in_pieces(reader, 4) == expected));
  BOOST_TEST(reader.segment_of(5).where.file.filename() == "part10.h5");
  BOOST_CHECK_THROW(reader.segment_of(17), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(memory_is_planned_without_taking_it_and_grows_with_reads_at_once) {
  const io::row_reader reader({{made_folder() / "layouts.h5", "/gzip/split"}});
  const auto total = [&](std::size_t concurrency) {
    std::size_t sum = 0;
    for (const auto& item : reader.memory({.concurrency = concurrency, .cache_bytes = 0})) sum += item.bytes;
    return sum;
  };
  BOOST_TEST(total(2) > total(1));
  BOOST_TEST(reader.cut_bytes() == 9u * 10 * 3 * 4 * 4);
  BOOST_TEST(reader.chunk_rows() == 10);
}

BOOST_AUTO_TEST_CASE(segments_of_another_type_or_shape_are_refused_by_name) {
  const auto file = made_folder() / "part1.h5";
  BOOST_CHECK_EXCEPTION(io::row_reader({{file, "/a/x"}, {file, "/b/y"}}), io::error, [](const io::error& e) {
    return e.context().dataset == "/b/y" &&
           std::string(e.what()).find("[4] float32, byte-swapped") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(types_without_a_fixed_size_are_refused_with_what_helps) {
  const std::pair<std::string, std::string> refused[] = {{"/ragged", "pad them to a fixed length"},
                                                         {"/compound", "name one of its members as a field"},
                                                         {"/reference", "read what they point to"},
                                                         {"/null", ""}};
  for (const auto& [name, advice] : refused)
    BOOST_CHECK_EXCEPTION(open("refused.h5", name), io::error, [&](const io::error& e) {
      return e.context().dataset == name && std::string(e.what()).find("is not read") != std::string::npos &&
             std::string(e.what()).find(advice) != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(types_within_types_that_are_not_read_say_what_to_do) {
  const std::pair<std::string, std::string> refused[] = {
      {"/table[arr]", "name one of their members as a field, as DATASET[MEMBER], or DATASET[A.MEMBER]"},
      {"/points", "name one of their members as a field"},
      {"/words", "store each text as a value"}};
  for (const auto& [name, advice] : refused)
    BOOST_CHECK_EXCEPTION(open("nested.h5", name), io::error,
                          [&](const io::error& e) { return std::string(e.what()).find(advice) != std::string::npos; });
  BOOST_CHECK_EXCEPTION(open("nested.h5", "/table[arr.z]"), io::error, [](const io::error& e) {
    return std::string(e.what()).find("it has no member z; there are x, y, name") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(texts_of_variable_length_in_compounds_are_class_codes) {
  const auto codes_of = [](const io::row_reader& reader) {
    BOOST_TEST((reader.segments()[0].info.access == io::access::staged));
    std::vector<std::int32_t> codes(reader.rows());
    reader.read(0, reader.rows(), std::as_writable_bytes(std::span(codes)));
    return codes;
  };
  const auto words = open("nested.h5", "/labelled[v]"), inner = open("nested.h5", "/labelled[in.t]");
  const std::vector<std::string> names{"", "a", "a longer one", "b"};
  BOOST_TEST(words.class_names() == names, boost::test_tools::per_element());
  std::vector<std::int32_t> expected, expected_inner;
  for (std::size_t n = 0; n < 20; ++n) {
    expected.push_back(std::array{3, 1, 0, 2}[n % 4]);
    expected_inner.push_back(n < 10 ? 0 : 1);
  }
  BOOST_TEST(codes_of(words) == expected, boost::test_tools::per_element());
  BOOST_TEST(codes_of(inner) == expected_inner, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(texts_of_variable_length_are_class_codes_that_all_segments_share) {
  const auto file = made_folder() / "refused.h5";
  const io::row_reader reader({{file, "/text"}, {file, "/more_text"}});
  const std::vector<std::string> names{"", "a class", "length", "variable"};
  BOOST_TEST(reader.class_names() == names, boost::test_tools::per_element());
  BOOST_TEST((reader.element().element == penstock::type::int32));
  BOOST_TEST((reader.segments()[0].info.access == io::access::staged));
  std::vector<std::int32_t> codes(6);
  reader.read(0, 6, std::as_writable_bytes(std::span(codes)));
  const std::vector<std::int32_t> expected{3, 2, 1, 3, 0, 1};
  BOOST_TEST(codes == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(texts_may_be_rows_along_any_axis_and_parts_of_them_are_read) {
  // The text at [r, c] of [5, 4] is "rc".
  const std::vector<io::location> where{
      {made_folder() / "refused.h5", "/texts", 1, {{.axis = 0, .first = 1, .count = 3}}}};
  const io::row_reader reader(where);
  BOOST_TEST(reader.rows() == 4);
  std::vector<std::int32_t> codes(2 * 3);
  reader.read(2, 2, std::as_writable_bytes(std::span(codes)));
  std::vector<std::string> texts;
  for (const auto code : codes) texts.push_back(reader.class_names().at(static_cast<std::size_t>(code)));
  const std::vector<std::string> expected{"12", "22", "32", "13", "23", "33"};
  BOOST_TEST(texts == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(reads_past_the_end_and_of_wrong_size_are_wrong_arguments) {
  const auto reader = open("layouts.h5", "/vector");
  std::vector<std::byte> out(4);
  BOOST_CHECK_THROW(reader.read(1000, 1, out), std::invalid_argument);
  BOOST_CHECK_THROW(reader.read(~0ull, 1, out), std::invalid_argument);
  BOOST_CHECK_THROW(reader.read(0, 2, out), std::invalid_argument);
  reader.read(1000, 0, {});
}

BOOST_AUTO_TEST_CASE(links_lead_to_their_datasets) {
  for (const std::string name : {"/soft", "/hard"}) BOOST_TEST(open("refused.h5", name).rows() == 6);
  const auto outside = open("refused.h5", "/outside");
  BOOST_TEST((rows_of(outside, 0, 5) == bytes_of_file(made_folder() / "part1.bin")));
  BOOST_CHECK_THROW(open("refused.h5", "/dangling"), io::error);
}

BOOST_AUTO_TEST_CASE(another_row_axis_and_parts_of_other_axes_are_read_on_every_path) {
  // The file holds (n // 3) at position n of [101, 7, 9]: the expected values are that arithmetic.
  const auto expected = [](std::uint64_t row, std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int32_t>(((a + 5) * 63 + row * 9 + b + 2) / 3);
  };
  for (const std::string name :
       {"/plain/rows", "/plain/split", "/gzip/rows", "/all/split", "/gzip/columns", "/shuffle/one"}) {
    const std::vector<io::location> where{
        {made_folder() / "layouts.h5",
         name,
         1,
         {{.axis = 0, .first = 5, .count = 40}, {.axis = 2, .first = 2, .count = 6}}}};
    const io::row_reader reader(where);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(reader.rows() == 7);
      BOOST_TEST(reader.row_shape() == (std::vector<std::uint64_t>{40, 6}), boost::test_tools::per_element());
      std::vector<std::int32_t> got(4 * 40 * 6);
      reader.read(2, 4, std::as_writable_bytes(std::span(got)));
      bool same = true;
      std::size_t at = 0;
      for (std::uint64_t row = 2; row < 6; ++row)
        for (std::uint64_t a = 0; a < 40; ++a)
          for (std::uint64_t b = 0; b < 6; ++b) same = same && got[at++] == expected(row, a, b);
      BOOST_TEST(same);
    }
  }
}

BOOST_AUTO_TEST_CASE(columns_are_rows_where_libhdf5_reads_and_from_memory_too) {
  // Both datasets hold (n // 3), big-endian, at position n of [6, 5].
  for (const std::string name : {"/scaleoffset", "/compact"}) {
    const std::vector<io::location> where{
        {made_folder() / "layouts.h5", name, 1, {{.axis = 0, .first = 1, .count = 4}}}};
    const io::row_reader reader(where);
    BOOST_TEST(reader.rows() == 5);
    BOOST_TEST(reader.element().swapped);
    const auto got = rows_of(reader, 1, 3);
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t a = 0; a < 4; ++a) {
        const auto expected = ((a + 1) * 5 + row + 1) / 3;
        BOOST_TEST(static_cast<std::size_t>(got[(row * 4 + a) * 4 + 3]) == expected);
      }
  }
}

BOOST_AUTO_TEST_CASE(parts_that_do_not_lie_inside_are_refused) {
  const auto refused = [](std::size_t row_axis, io::axis_range r) {
    const std::vector<io::location> where{{made_folder() / "layouts.h5", "/plain/rows", row_axis, {r}}};
    BOOST_CHECK_THROW(io::row_reader{where}, io::error);
  };
  refused(3, {.axis = 1, .first = 0, .count = 1});
  refused(0, {.axis = 0, .first = 0, .count = 1});
  refused(0, {.axis = 3, .first = 0, .count = 1});
  refused(0, {.axis = 1, .first = 7, .count = 1});
  refused(0, {.axis = 1, .first = 0, .count = 0});
  refused(0, {.axis = 1, .first = 1, .count = ~std::uint64_t{0}});
}

BOOST_AUTO_TEST_CASE(a_virtual_dataset_without_a_source_is_refused_unless_fill_values_are_allowed) {
  const std::vector<io::location> absent{{made_folder() / "virtual.h5", "/absent"}};
  const std::vector<io::location> locked{{made_folder() / "virtual.h5", "/absent_locked"}};
  for (const auto& segments : {absent, locked})
    BOOST_CHECK_EXCEPTION(io::row_reader{segments}, io::error, [](const io::error& e) {
      return std::string(e.what()).find("nowhere.h5:/x") != std::string::npos;
    });
  const io::row_reader reader(absent, {.allow_missing_sources = true, .faults = {}});
  BOOST_TEST(reader.segments()[0].info.missing_sources.size() == 1);
  const auto rows = rows_of(reader, 4, 4);
  BOOST_TEST(std::all_of(rows.begin(), rows.end(), [](std::byte b) { return b == std::byte{0}; }));
}

BOOST_AUTO_TEST_CASE(a_member_that_is_not_there_names_those_that_are) {
  BOOST_CHECK_EXCEPTION(open("members.h5", "/gzip[nothing]"), io::error, [](const io::error& e) {
    return std::string(e.what()).find("id, value, inner, vector, label") != std::string::npos;
  });
  BOOST_CHECK_THROW(open("members.h5", "/names[c][d]"), io::error);
  BOOST_CHECK_THROW(open("members.h5", "/nothing[id]"), io::error);
}

BOOST_AUTO_TEST_CASE(a_name_may_hold_any_character) {
  const auto bytes = bytes_of_file(made_folder() / "names.txt");
  const std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto expected = bytes_of_file(made_folder() / "names.bin");
  std::istringstream names(all);
  int count = 0;
  for (std::string name; std::getline(names, name, '\0'); ++count) {
    BOOST_TEST((rows_of(open("names.h5", name), 0, 20) == expected), name);
    BOOST_TEST(io::datasets((made_folder() / "names.h5").string(), name).size() == 1, name);
  }
  BOOST_TEST(count == 9);
}

BOOST_AUTO_TEST_CASE(a_filter_without_its_plugin_is_named_with_its_number) {
  BOOST_CHECK_EXCEPTION(rows_of(open("no_plugin.h5", "/lzo"), 0, 4), io::error, [](const io::error& e) {
    return std::string(e.what()).find("filter 305 (lzo)") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(damaged_chunks_are_told_with_their_rows_and_others_are_read) {
  for (const auto& [name, first] : {std::pair<std::string, std::uint64_t>{"/gzip", 40}, {"/fletcher", 24}}) {
    const auto reader = open("damaged.h5", name);
    BOOST_CHECK_EXCEPTION(rows_of(reader, 0, 64), io::error, [&](const io::error& e) {
      return e.context().rows.first == first && e.context().rows.count == 8 && e.context().dataset == name &&
             e.context().damaged;
    });
    BOOST_CHECK_THROW(rows_of(reader, first + 2, 1), io::error);
    BOOST_CHECK_THROW(rows_of(reader, first + 2, 1), io::error);
    rows_of(reader, 0, first);
  }
}

BOOST_AUTO_TEST_SUITE_END()
