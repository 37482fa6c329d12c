// libFuzzer target of the checkpoint reader. An input's first byte says what is wrong with the datasets of a small
// checkpoint; the rest is the JSON of its attribute: a merge patch (RFC 7396) of the right one where it is an object
// of bounded depth, else as it is. It is given the checksum that belongs to it: whoever forges a file can do that, too.

#include <penstock/checksum.hpp>
#include <penstock/foreign_json.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>
#include <penstock/train/trainer.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <optional>
#include <span>

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

/// A small run, and the attribute of its checkpoint.
struct small_run {
  train::trainer_options options{.stage = {.model = {.inputs = 5, .hidden = {7}, .outputs = 3},
                                           .optimizer = train::adamw{.learning_rate = 0.01},
                                           .rows = 4,
                                           .seed = 3,
                                           .threads = 1}};
  train::trainer trainer{
      gpu::stream_ref{}, options,
      std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options.stage))};
  std::filesystem::path file = fmt::format("/dev/shm/penstock-fuzz-{}.h5", ::getpid());
  json attribute;

  small_run() {
    trainer.save(file);
    attribute = json::parse(*io::read_attribute(file, "/", "penstock"));
    attribute.erase("sealed");  // the forged ones are not
  }
  ~small_run() { ::unlink(file.c_str()); }
};

enum class damage { none, missing, other_type, fewer_rows, other_values };

void write_item(io::writer& to, const train::state_item& item, damage what, json& sums) {
  if (what == damage::missing) return;
  auto shape = item.shape;
  if (what == damage::fewer_rows) shape[0] -= shape[0] > 1;
  const auto element = what == damage::other_type ? penstock::type::int32 : item.element;
  std::size_t bytes = size_of(element);
  for (const auto extent : shape) bytes *= extent;
  std::vector<std::byte> values(bytes);
  sums[item.path] = sum_of(values);
  if (what == damage::other_values) values.back() = std::byte{1};
  to.create(item.path, element, shape);
  to.write_rows(item.path, 0, shape[0], values);
}

void write_checkpoint(small_run& run, unsigned choice, const std::string& input) {
  io::writer to(run.file);
  auto items = run.trainer.stage().state();
  for (const char* path : {"/normalisation/mean", "/normalisation/deviation"})
    items.push_back({path, penstock::type::float64, {run.options.stage.model.inputs}, nullptr});
  json attribute = run.attribute;
  for (std::size_t n = 0; n < items.size(); ++n)
    write_item(to, items[n], n == choice >> 3 ? static_cast<damage>(choice & 7) : damage::none, attribute["checksums"]);
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
  if (size == 0) return -1;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (input.empty() || input.find('\0') != std::string::npos) return -1;  // no text attribute holds that
  try {
    write_checkpoint(run, data[0], input);
  } catch (const io::error&) {
    return -1;  // longer than an attribute may be
  }
  attempt([&] { load_as_predictor(run.file); });
  attempt([&] { run.trainer.resume(run.file); });
  return 0;
}
