// libFuzzer target of the checkpoint reader. An input's first byte says what is wrong with which dataset of a small
// checkpoint, the second whether that stands within a step; the rest is the JSON of its attribute: a merge patch (RFC
// 7396) of the right one where it is an object of bounded depth, else as it is. It is given the checksum that belongs
// to it: whoever forges a file can do that, too.

#include <penstock/checksum.hpp>
#include <penstock/foreign_json.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>
#include <penstock/train/trainer.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpu = penstock::gpu;
namespace io = penstock::io;
namespace train = penstock::train;
using nlohmann::json;

namespace {

constexpr std::size_t largest_predictor = std::size_t{64} << 20;

std::string sum_of(std::span<const std::byte> bytes) {
  penstock::checksum sum;
  sum.add(bytes);
  return fmt::format("{:016x}", sum.value());
}

/// A dataset of a checkpoint.
struct stored {
  std::string path;
  penstock::type element;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> values;
};

std::vector<stored> datasets_in(const std::filesystem::path& file) {
  std::vector<stored> all;
  for (const io::dataset_info& info : io::file(file).datasets()) {
    const io::row_reader reader({{file, info.path}});
    all.push_back(
        {info.path, info.element->element, info.shape, std::vector<std::byte>(reader.rows() * reader.row_bytes())});
    reader.read(0, reader.rows(), all.back().values);
  }
  return all;
}

/// A small run, and its checkpoint.
struct small_run {
  train::trainer_options options{.stage = {.model = {.inputs = 5, .hidden = {7}, .outputs = 3},
                                           .class_weights = {1, 2, 0.5},
                                           .optimizer = train::adamw{.learning_rate = 0.01},
                                           .rows = 4,
                                           .seed = 3,
                                           .threads = 1},
                                 .accumulate = 2,
                                 .class_names = {"cat", "", "dog"}};
  train::trainer trainer{
      gpu::stream_ref{}, options,
      std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options.stage))};
  std::filesystem::path file = fmt::format("/dev/shm/penstock-fuzz-{}.h5", ::getpid());
  json attribute, begun_step;
  std::vector<stored> datasets, gradients;

  small_run() {
    trainer.save(file);
    attribute = json::parse(*io::read_attribute(file, "/", "penstock"));
    attribute.erase("sealed");  // the forged ones are not
    datasets = datasets_in(file);
    begun_step = {{"batches", 1},
                  {"of", options.accumulate},
                  {"batch_rows", options.stage.rows},
                  {"rows", 4},
                  {"weight", 4.5},
                  {"running", attribute.at("training")},
                  {"bad_input", nullptr},
                  {"bad_loss", nullptr}};
    for (const train::state_item& item : trainer.stage().gradients()) {
      gradients.push_back({item.path, item.element, item.shape, {}});
      std::size_t bytes = size_of(item.element);
      for (const auto extent : item.shape) bytes *= extent;
      gradients.back().values.resize(bytes);
    }
  }
  ~small_run() { ::unlink(file.c_str()); }
};

enum class damage { none, missing, other_type, fewer_rows, other_values };

void write_dataset(io::writer& to, stored what, damage how, json& sums) {
  if (how == damage::missing) return;
  if (how == damage::fewer_rows) what.shape[0] -= what.shape[0] > 1;
  if (how == damage::other_type)
    what.element = what.element == penstock::type::int32 ? penstock::type::int16 : penstock::type::int32;
  std::size_t bytes = size_of(what.element);
  for (const auto extent : what.shape) bytes *= extent;
  what.values.resize(bytes);
  sums[what.path] = sum_of(what.values);
  if (how == damage::other_values) what.values.back() ^= std::byte{1};
  to.create(what.path, what.element, what.shape);
  to.write_rows(what.path, 0, what.shape[0], what.values);
}

void write_checkpoint(small_run& run, unsigned choice, bool begun, const std::string& input) {
  io::writer to(run.file);
  std::vector<stored> datasets = run.datasets;
  json attribute = run.attribute;
  if (begun) {
    datasets.insert(datasets.end(), run.gradients.begin(), run.gradients.end());
    attribute["begun_step"] = run.begun_step;
  }
  for (std::size_t n = 0; n < datasets.size(); ++n)
    write_dataset(to, datasets[n], n == choice >> 3 ? static_cast<damage>(choice & 7) : damage::none,
                  attribute["checksums"]);
  const json patch = penstock::parse_foreign_json<json>(input);
  if (patch.is_object()) attribute.merge_patch(patch);
  const std::string text = patch.is_object() ? attribute.dump() : input;
  to.attribute("/", "penstock", text);
  to.attribute("/", "penstock_checksum", sum_of(std::as_bytes(std::span(text))));
  to.commit();
}

/// Refused with an exception that names the file, or done.
template <class F>
void attempt(F f) {
  try {
    f();
  } catch (const io::error&) {
  } catch (const train::error&) {
  }
}

void load_as_predictor(const std::filesystem::path& file) {
  const auto options = train::options_of(file);
  std::optional<gpu::ledger> ledger;
  try {
    ledger = train::plan(gpu::device::host(), options);
  } catch (const std::invalid_argument&) {
    return;  // a model that there cannot be
  }
  if (ledger->total(gpu::memory_kind::device) > largest_predictor) return;
  train::predictor predictor(gpu::stream_ref{}, options, std::make_shared<gpu::memory>(gpu::device::host(), *ledger));
  predictor.load(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static small_run run;
  if (size < 2) return -1;
  const std::string input(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (input.empty() || input.find('\0') != std::string::npos) return -1;  // no text attribute holds that
  try {
    write_checkpoint(run, data[0], data[1] & 1, input);
  } catch (const io::error&) {
    return -1;  // longer than an attribute may be
  }
  attempt([&] { load_as_predictor(run.file); });
  attempt([&] { run.trainer.resume(run.file); });
  return 0;
}
