#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <stop_token>
#include <thread>
#include <vector>

using namespace penstock;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

/// Weights and moments after `epochs` epochs without a stop.
std::vector<float> straight(const training_file& data, const train::trainer_options& options, int epochs) {
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  for (int epoch = 0; epoch < epochs; ++epoch) run.trainer.train_epoch(run.planned.training);
  return run.weights();
}

struct failing final : fault_injector {
  fault_site site;
  explicit failing(fault_site s) : site(s) {}
  fault before(fault_site asked, std::string_view, std::uint64_t, std::size_t) override {
    fault f;
    if (asked == site) f.error = ENOSPC;
    return f;
  }
};

/// A precondition that skips a case where h5py is not installed, and says so.
boost::test_tools::assertion_result h5py_is_there(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result there(std::system("/usr/bin/python3 -c 'import h5py' 2> /dev/null") == 0);
  there.message() << "h5py is not installed";
  return there;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint)

BOOST_AUTO_TEST_CASE(a_resumed_run_gives_the_bits_of_the_run_that_was_not_stopped) {
  const training_file data;
  for (const auto& options : {small_trainer(64, 1), small_trainer(32, 3)}) {
    const auto expected = straight(data, options, 3);
    {
      training_run run(data, options);
      run.trainer.normalise_from(run.planned.training);
      run.trainer.train_epoch(run.planned.training);
      run.trainer.save(data.path("c.h5"));
    }
    training_run resumed(data, options);
    BOOST_TEST(resumed.trainer.resume(data.path("c.h5")) == "");
    BOOST_TEST(resumed.trainer.position().epoch == 1u);
    for (int epoch = 0; epoch < 2; ++epoch) resumed.trainer.train_epoch(resumed.planned.training);
    BOOST_TEST(test::same_bits<float>(resumed.weights(), expected));
  }
}

BOOST_AUTO_TEST_CASE(so_does_a_run_stopped_within_an_epoch) {
  const training_file data;
  const auto options = small_trainer(32, 3);
  const auto expected = straight(data, options, 2);
  train::epoch_progress whole;
  {
    training_run run(data, options);
    run.trainer.normalise_from(run.planned.training);
    run.trainer.train_epoch(run.planned.training);
    std::stop_source stop;
    run.trainer.train_epoch(run.planned.training, stop.get_token(), [&](const auto&) { stop.request_stop(); });
    run.trainer.save(data.path("c.h5"));
  }
  training_run resumed(data, options);
  resumed.trainer.resume(data.path("c.h5"));
  BOOST_TEST(resumed.trainer.position().epoch == 1u);
  BOOST_TEST(resumed.trainer.position().next_batch == 6u);
  const auto rest = resumed.trainer.train_epoch(resumed.planned.training);
  BOOST_TEST(rest.training.rows == 1000u);
  BOOST_TEST(test::same_bits<float>(resumed.weights(), expected));
}

BOOST_AUTO_TEST_CASE(weights_are_plain_datasets, *boost::unit_test::precondition(h5py_is_there)) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.save(data.path("c.h5"));
  const std::string command = "/usr/bin/python3 -c \"import h5py, json; f = h5py.File('" + data.path("c.h5").string() +
                              "'); a = json.loads(f.attrs['penstock']); "
                              "print(f['model/layer0/weight'].shape, f['model/layer1/bias'].shape, "
                              "f['optimizer/second_moment/layer1/weight'].dtype, f['normalisation/mean'].shape, "
                              "a['hidden'], a['steps'])\" > " +
                              data.path("out").string();
  BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
  std::string line;
  std::ifstream text(data.path("out"));
  std::getline(text, line);
  BOOST_TEST(line == "(24, 12) (4,) float32 (12,) [24] 0");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_run_is_refused_with_both_sides) {
  const training_file data;
  training_run(data, small_trainer()).trainer.save(data.path("c.h5"));
  const auto refused = [&](train::trainer_options options, const std::string& here, const std::string& there) {
    training_run run(data, options);
    const auto before = run.weights();
    BOOST_CHECK_EXCEPTION(run.trainer.resume(data.path("c.h5")), train::error, [&](const train::error& e) {
      const std::string text = e.what();
      return text.find(here) != std::string::npos && text.find(there) != std::string::npos &&
             text.find("c.h5") != std::string::npos;
    });
    BOOST_TEST(test::same_bits<float>(run.weights(), before));
  };
  auto options = small_trainer();
  options.stage.model.hidden = {25};
  refused(options, "12-25-4", "12-24-4");
  options = small_trainer();
  options.stage.optimizer = train::sgd{};
  refused(options, "sgd", "adamw");
  options = small_trainer();
  options.stage.seed = 77;
  refused(options, "77", "3");
  refused(small_trainer(64, 2), "128", "64");
}

BOOST_AUTO_TEST_CASE(one_of_another_precision_goes_on_and_says_so) {
  const training_file data;
  training_run(data, small_trainer()).trainer.save(data.path("c.h5"));
  auto options = small_trainer();
  options.stage.precision = train::precision::bf16;
  training_run run(data, options);
  BOOST_TEST(run.trainer.resume(data.path("c.h5")) == "its matrix products were float32, and this run's are bf16");
  run.trainer.save(data.path("d.h5"));
  BOOST_TEST(run.trainer.resume(data.path("d.h5")) == "");
}

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

BOOST_AUTO_TEST_CASE(other_data_or_another_order_is_refused_with_both_sides_before_a_step) {
  const training_file data;
  {
    training_run run(data, small_trainer());
    run.trainer.train_epoch(run.planned.training);
    run.trainer.save(data.path("c.h5"));
  }
  const gpu::device host = gpu::device::host();
  constexpr std::uint64_t other_seed = 9;  // training_file's own is 5
  auto opened = data.open(small_trainer().stage.rows, pipeline::last_batch::pad, other_seed);
  const auto plan = opened.plan(host, {});
  auto other = std::move(opened).build(plan, std::make_shared<gpu::memory>(host, plan.ledger));
  training_run run(data, small_trainer());
  run.trainer.resume(data.path("c.h5"));
  const auto before = run.weights();
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(other), train::error, [&](const train::error& e) {
    const std::string text = e.what();
    return text.find("seed 9") != std::string::npos && text.find("seed 5") != std::string::npos &&
           text.find("1000 rows of data.h5:/x with data.h5:/label") != std::string::npos;
  });
  BOOST_TEST(test::same_bits<float>(run.weights(), before));
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
}

BOOST_AUTO_TEST_CASE(names_that_are_no_utf8_are_kept_and_compared) {
  training_file data;
  const auto rename = [&](const char* name) {
    data.file = data.path(name);
    data.write();
  };
  rename("caf\xe9.h5");
  auto options = small_trainer();
  options.class_names = {"caf\xe9", "caf\xc3\xa9", "tea", "milk"};
  {
    training_run run(data, options);
    run.trainer.train_epoch(run.planned.training);
    run.trainer.save(data.path("c.h5"));
  }
  BOOST_TEST(train::labels_of(data.path("c.h5")).names.at(0) == "caf\\xe9");
  BOOST_TEST(train::labels_of(data.path("c.h5")).names.at(1) == options.class_names[1]);
  training_run resumed(data, options);
  BOOST_TEST(resumed.trainer.resume(data.path("c.h5")) == "");
  BOOST_TEST(resumed.trainer.train_epoch(resumed.planned.training).epoch == 1u);
  const auto names_both = [](const char* here) {
    return [here](const train::error& e) {
      const std::string text = e.what();
      return text.find("caf\\") != std::string::npos && text.find(here) != std::string::npos;
    };
  };
  auto other = options;
  other.class_names[0] = "caf\xe8";
  training_run refused(data, other);
  BOOST_CHECK_EXCEPTION(refused.trainer.resume(data.path("c.h5")), train::error, names_both("caf\\\\xe8"));
  rename("caf\xe8.h5");
  training_run moved(data, options);
  moved.trainer.resume(data.path("c.h5"));
  BOOST_CHECK_EXCEPTION(moved.trainer.train_epoch(moved.planned.training), train::error, names_both("caf\\xe8.h5"));
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
