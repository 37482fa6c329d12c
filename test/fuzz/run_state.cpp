// libFuzzer target of the state of a run: an input is the JSON text that pipeline::resume_at() is given, and where it
// is an object of bounded depth, a merge patch (RFC 7396) of the right one.

#include <penstock/foreign_json.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/pipeline/description.hpp>

#include <nlohmann/json.hpp>

#include <numeric>

namespace pp = penstock::pipeline;
using namespace penstock::literals;

namespace {

pp::pipeline pipeline_of_few_rows() {
  const auto file = std::filesystem::temp_directory_path() / "run_state.h5";
  std::vector<std::int32_t> rows(96);
  std::iota(rows.begin(), rows.end(), 0);
  penstock::io::writer to(file);
  to.create("/x", penstock::type::int32, {rows.size()});
  to.write_rows("/x", 0, rows.size(), std::as_bytes(std::span(rows)));
  to.commit();
  const auto source = pp::source{}.field("x", {{file, "/x"}});
  return (pp::read(source, pp::shuffled{.seed = 3, .run_rows = 8, .pool_rows = 32}) | pp::batched({.rows = 16}))
      .build(penstock::gpu::device::host(), {.device_bytes = 4_MiB, .pinned_bytes = 4_MiB, .host_bytes = 16_MiB});
}

void resume(const pp::pipeline& pipeline, std::string_view text) {
  try {
    pipeline.state(pipeline.resume_at(text));
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const pp::pipeline pipeline = pipeline_of_few_rows();
  static const auto right = nlohmann::json::parse(pipeline.state({0, 0}));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  resume(pipeline, text);
  const auto patch = penstock::parse_foreign_json<nlohmann::json>(text);
  if (!patch.is_object()) return 0;
  auto state = right;
  state.merge_patch(patch);
  resume(pipeline, state.dump());
  return 0;
}
