// Checkpoints as files: cut, changed, replaced while they are read, on a disk that is full.

#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace penstock;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

struct failing final : fault_injector {
  fault_site site;
  explicit failing(fault_site s) : site(s) {}
  fault before(fault_site asked, std::string_view, std::uint64_t, std::size_t) override {
    fault f;
    if (asked == site) f.error = ENOSPC;
    return f;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint)

BOOST_AUTO_TEST_CASE(what_is_no_whole_checkpoint_is_refused) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.save(data.path("c.h5"));
  BOOST_CHECK_THROW(run.trainer.resume(data.path("missing.h5")), io::error);
  BOOST_CHECK_THROW(run.trainer.resume(data.file), train::error);
  std::filesystem::copy(data.path("c.h5"), data.path("cut.h5"));
  std::filesystem::resize_file(data.path("cut.h5"), std::filesystem::file_size(data.path("c.h5")) / 2);
  BOOST_CHECK_THROW(run.trainer.resume(data.path("cut.h5")), io::error);
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_is_refused_in_a_sentence) {
  const training_file data;
  const auto whole = data.path("c.h5"), flipped = data.path("flipped.h5");
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(whole);
  const auto saved = run.weights();
  const auto bytes = std::filesystem::file_size(whole);
  constexpr std::uintmax_t stride = 41;      // shares no factor with what HDF5 aligns
  constexpr std::uintmax_t seal_bytes = 32;  // at the end
  for (std::uintmax_t at = 0; at < bytes; at += at + stride < bytes - seal_bytes ? stride : 1) {
    std::filesystem::copy_file(whole, flipped, std::filesystem::copy_options::overwrite_existing);
    {
      std::fstream file(flipped, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 0x10));
    }
    try {
      run.trainer.resume(flipped);
      BOOST_ERROR("byte " << at << " was not missed");
    } catch (const penstock::error& e) {
      const std::string text = e.what();
      if (text.find("flipped.h5") == std::string::npos || text.find('\n') != std::string::npos)
        BOOST_ERROR("byte " << at << ": " << text);
    }
    if (!test::same_bits<float>(run.weights(), saved)) BOOST_ERROR("byte " << at << " changed a weight silently");
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_cut_anywhere_is_refused_in_a_sentence) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.save(data.path("c.h5"));
  const auto bytes = std::filesystem::file_size(data.path("c.h5"));
  constexpr std::uintmax_t seal_bytes = 32, stride = 97;
  for (std::uintmax_t cut = 1; cut <= bytes; cut += cut < seal_bytes + 40 || cut + stride > bytes ? 1 : stride) {
    const auto left = bytes - cut;
    std::filesystem::copy_file(data.path("c.h5"), data.path("cut.h5"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(data.path("cut.h5"), left);
    BOOST_CHECK_EXCEPTION(run.trainer.resume(data.path("cut.h5")), penstock::error, [](const penstock::error& e) {
      return std::string(e.what()).find("cut.h5") != std::string::npos;
    });
  }
}

/// Found by fuzzing: a number that does not fit is undefined where JSON converts it by itself.
BOOST_AUTO_TEST_CASE(a_forged_count_is_refused) {
  const training_file data;
  const auto file = data.path("c.h5");
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(file);
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto replace = [&](const std::string& was, const std::string& is) {
    BOOST_TEST_REQUIRE(was.size() == is.size());
    const auto at = bytes.find(was);
    BOOST_TEST_REQUIRE(at != std::string::npos, was);
    bytes.replace(at, was.size(), is);
  };
  const auto sum_of = [](const std::string& text) {
    checksum sum;
    sum.add(std::as_bytes(std::span(text)));
    std::ostringstream hex;
    hex << std::hex << std::setw(16) << std::setfill('0') << sum.value();
    return hex.str();
  };
  const std::string text = *io::read_attribute(file, "/", "penstock");
  const std::string was = "  \"steps\": 16", is = "\"steps\":99e99";
  const std::string sealed = "\"sealed\": true", unsealed = "\"sealed\": null";
  std::string forged = text;
  forged.replace(forged.find(was), was.size(), is);
  forged.replace(forged.find(sealed), sealed.size(), unsealed);
  replace(was, is);
  replace(sealed, unsealed);
  replace(sum_of(text), sum_of(forged));
  constexpr std::size_t seal_bytes = 32;
  std::ofstream(file, std::ios::binary) << bytes.substr(0, bytes.size() - seal_bytes);
  BOOST_CHECK_EXCEPTION(run.trainer.resume(file), train::error, [](const train::error& e) {
    return std::string(e.what()).find("lacks a value") != std::string::npos;
  });
}

// Parsed without recursion, such a value ends the program where it is copied, compared or printed.
BOOST_AUTO_TEST_CASE(a_text_that_nests_without_end_is_refused_in_a_short_sentence) {
  const training_file data;
  training_run run(data, small_trainer());
  const auto file = data.path("c.h5");
  run.trainer.save(file);
  const std::string text = *io::read_attribute(file, "/", "penstock");
  const auto refused = [&](const std::string& attribute, const std::string& words) {
    {
      io::writer to(file);
      to.attribute("/", "penstock", attribute);
      to.commit();
    }
    const auto in_a_short_sentence = [&](const train::error& e) {
      const std::string said = e.what();
      return said.find("c.h5") != std::string::npos && said.find(words) != std::string::npos && said.size() < 1000 &&
             said.find('\n') == std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(run.trainer.resume(file), train::error, in_a_short_sentence);
    BOOST_CHECK_EXCEPTION(train::options_of(file), train::error, in_a_short_sentence);
    BOOST_CHECK_EXCEPTION(train::labels_of(file), train::error, in_a_short_sentence);
  };
  constexpr std::size_t deep = 100000;
  const std::string arrays = std::string(deep, '[') + std::string(deep, ']');
  std::string objects;
  for (std::size_t n = 0; n < deep; ++n) objects += "{\"a\":";
  objects += '1' + std::string(deep, '}');
  for (const std::string& value : {arrays, objects}) {
    refused("{\"format\":" + value + "}", "damaged");
    refused("{\"format\":4,\"identity\":" + value + "}", "damaged");
    refused(value, "damaged");
  }
  refused("{\"format\":\"" + std::string(deep, 'x') + "\"}", "its format is");
}

BOOST_AUTO_TEST_CASE(one_that_is_replaced_while_it_is_read_is_the_old_one_or_the_new_one) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  std::vector<std::vector<float>> weights;
  const std::filesystem::path saved[] = {data.path("0.h5"), data.path("1.h5")}, place = data.path("c.h5");
  for (const auto& file : saved) {
    run.trainer.train_epoch(run.planned.training);
    run.trainer.save(file);
    weights.push_back(run.weights());
  }
  constexpr int reads = 60, moments = 40;
  std::atomic<int> reading{0}, replaced{0};
  const auto replace = [&](int which) {
    std::filesystem::copy_file(saved[which % 2], data.path("next.h5"));
    std::filesystem::rename(data.path("next.h5"), place);
  };
  replace(0);
  std::thread other([&] {
    for (int n = 1; n <= reads; ++n) {
      while (reading < n) std::this_thread::yield();
      const auto begin = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - begin < n % moments * std::chrono::microseconds(50)) {
      }
      replace(n);
      replaced = n;
    }
  });
  for (int n = 1; n <= reads; ++n) {
    reading = n;
    BOOST_CHECK_NO_THROW(run.trainer.resume(place));
    BOOST_TEST((run.trainer.position().epoch == 1u || run.trainer.position().epoch == 2u));
    BOOST_TEST(test::same_bits<float>(run.weights(), weights[run.trainer.position().epoch - 1]));
    BOOST_CHECK_NO_THROW(train::options_of(place));
    while (replaced < n) std::this_thread::yield();
  }
  other.join();
}

BOOST_AUTO_TEST_CASE(a_failing_disk_leaves_the_older_checkpoint) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.save(data.path("c.h5"));
  const auto bytes = std::filesystem::file_size(data.path("c.h5"));
  for (const auto site : {fault_site::write_file, fault_site::sync_file, fault_site::rename_file}) {
    BOOST_CHECK_THROW(run.trainer.save(data.path("c.h5"), std::make_shared<failing>(site)), io::error);
    BOOST_TEST(std::filesystem::file_size(data.path("c.h5")) == bytes);
    run.trainer.resume(data.path("c.h5"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
