// Checkpoints whose text somebody wrote, with the checksum that belongs to it. Each of these was found by fuzzing, and
// was an exception of another type than the caller's.

#include "../train/training_file.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

namespace gpu = penstock::gpu;
namespace io = penstock::io;
namespace fs = std::filesystem;
namespace train = penstock::train;
using namespace penstock::test;

namespace {

/// A file with no more than a checkpoint's text, in which `was` became `is`.
fs::path forged(const training_file& data, const std::string& was, const std::string& is) {
  const fs::path whole = data.path("c.h5"), file = data.path("forged.h5");
  training_run run(data, small_trainer());
  run.trainer.save(whole);
  std::string text = *io::read_attribute(whole, "/", "penstock");
  const auto replace = [&](const std::string& from, const std::string& to) {
    BOOST_TEST_REQUIRE(text.find(from) != std::string::npos, from);
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"sealed\": true", "\"sealed\": false");
  replace(was, is);
  penstock::checksum sum;
  sum.add(std::as_bytes(std::span(text)));
  io::writer to(file);
  to.attribute("/", "penstock", text);
  to.attribute("/", "penstock_checksum", fmt::format("{:016x}", sum.value()));
  to.commit();
  return file;
}

auto says(const fs::path& file, const std::string& words) {
  return [=](const train::error& e) {
    const std::string text = e.what();
    return text.find(file.string()) != std::string::npos && text.find(words) != std::string::npos &&
           text.find('\n') == std::string::npos;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forged_checkpoints)

BOOST_AUTO_TEST_CASE(a_name_that_is_not_known_is_refused_in_a_sentence) {
  const training_file data(100);
  const std::string activation = "\"activation\": \"relu\"";
  for (const auto& [was, is] :
       {std::pair<std::string, std::string>{activation, "\"activation\": \"no such\""},
        {"\"compute\": \"float32\"", "\"compute\": \"no such\""},
        {activation, activation + R"(, "pair": {"join": "no such", "shared": true, "embedding": 4, "head": []})"}}) {
    const fs::path file = forged(data, was, is);
    BOOST_CHECK_EXCEPTION(train::options_of(file), train::error, says(file, "no such"));
  }
}

BOOST_AUTO_TEST_CASE(a_value_that_lacks_is_refused_in_a_sentence) {
  const training_file data(100);
  const fs::path file = forged(data, "\"checksums\": {", "\"other\": {");
  const auto options = train::options_of(file);
  const auto memory = std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options));
  train::predictor predictor(gpu::stream_ref{}, options, memory);
  BOOST_CHECK_EXCEPTION(predictor.load(file), train::error, says(file, "lacks a value"));
  const fs::path model = forged(data, "\"outputs\": ", "\"other\": ");
  BOOST_CHECK_EXCEPTION(train::options_of(model), train::error, says(model, "lacks a value"));
}

BOOST_AUTO_TEST_SUITE_END()
