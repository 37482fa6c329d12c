// Streams far more bytes than any memory holds, with stalls in every stage, and watches that memory stays flat and that
// the data's checksum on the device is the files'.

#include <penstock/pipeline/description.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include "../../../examples/common/program.hpp"
#include "../../../examples/throughput/checksum.hpp"
#include "memory_watch.hpp"
#include "stall_on_device.hpp"
#include "stalls.hpp"
#include "stored_rows.hpp"

namespace gpu = penstock::gpu;
namespace pp = penstock::pipeline;
using namespace penstock::literals;
using namespace penstock::test;

namespace {

struct options {
  std::string device = "auto";
  std::string folder = std::filesystem::temp_directory_path();
  std::string order = "shuffled";
  std::size_t bytes = 200'000'000'000;
  std::size_t file_bytes = 8_GiB;
  std::size_t budget_bytes = 256_MiB;
  std::size_t longest_stall_ms = 40;
  bool spoil = false;
  stalls::options stalling;
};

/// A pipeline of all stages, and the memory that it shares with the checksum.
class streaming {
 public:
  streaming(const stored_rows& rows, std::uint64_t times, gpu::device device, const options& o,
            std::shared_ptr<stalls> seam)
      : stalls_(std::move(seam)), stream_(device, false, stalls_) {
    auto opened = describe(rows.segments(times), o).open();
    const gpu::budget budget{o.budget_bytes, o.budget_bytes, o.budget_bytes};
    gpu::ledger items;
    items.add(gpu::memory_kind::device, "sum", sizeof(std::uint64_t));
    items.add(gpu::memory_kind::pinned, "result", sizeof(std::uint64_t));
    const auto plan = opened.plan(device, budget, items);
    items.add(plan.ledger);
    fmt::print("{}\n", to_text(items, budget));
    memory_ = std::make_shared<gpu::memory>(device, items, stalls_);
    pipeline_.emplace(std::move(opened).build(plan, memory_));
  }

  /// Streams all rows; `streamed` counts their bytes. Returns the checksum that the device found.
  std::uint64_t run(std::atomic<std::uint64_t>& streamed) {
    auto* const sum = reinterpret_cast<std::uint64_t*>(memory_->at(gpu::memory_kind::device, "sum").data());
    auto* const result = reinterpret_cast<std::uint64_t*>(memory_->at(gpu::memory_kind::pinned, "result").data());
    const std::uint64_t every = std::max<std::uint64_t>(1, stalls_->usual() / 16);  // batches are larger than blocks
    gpu::fill(stream_, sum, 0, sizeof(*sum));
    for (auto& batch : pipeline_->epochs(0, 1, {.stream = stream_})) {
      stalls_->pass("consumer", every);
      if (memory_->device().is_cuda()) stall_on_device(batch.stream(), stalls_->next("consumer's stream", every));
      const auto x = batch.view("x");
      examples::add_checksum(batch.stream(), {x.data, batch.valid_rows(), x.row_bytes}, sum);
      streamed += batch.valid_rows() * x.row_bytes;
    }
    gpu::copy(stream_, result, sum, sizeof(*sum));
    gpu::stream_ref(stream_).synchronize();
    return *result;
  }

  pp::pipeline_report report() const { return pipeline_->report(); }

 private:
  pp::description describe(std::vector<penstock::io::location> segments, const options& o) {
    pp::order_options order = pp::sequential{};
    const std::uint64_t pool_rows = o.budget_bytes / 8 / stored_rows::row_bytes;
    if (o.order == "shuffled") order = pp::shuffled{.seed = o.stalling.seed, .run_rows = 256, .pool_rows = pool_rows};
    const auto stall_in = [this](std::string stage) {
      return [this, stage = std::move(stage)](const pp::block&) { stalls_->pass(stage, stalls_->usual()); };
    };
    return pp::read(pp::source{}.field("x", std::move(segments)), order) | penstock::fault_seam(stalls_) |
           pp::transform_host({.name = "augment", .concurrency = 4}, stall_in("host transform")) |
           pp::transform_device({.name = "normalise"}, stall_in("device transform")) | pp::batched({.rows = 4096});
  }

  std::shared_ptr<stalls> stalls_;
  gpu::stream stream_;
  std::shared_ptr<gpu::memory> memory_;
  std::optional<pp::pipeline> pipeline_;
};

std::vector<memory_course> courses_of(gpu::device device, const std::shared_ptr<stalls>& seam) {
  // What the C library keeps for threads comes in small steps; a device's memory comes in pieces of 2 MiB.
  return {{"resident", 16_MiB, resident_bytes},
          {"used on the device", 2_MiB, [device] { return used_bytes(device); }},
          {"allocated on the device", 0, [seam] { return seam->device_bytes(); }},
          {"allocated pinned", 0, [seam] { return seam->pinned_bytes(); }}};
}

void print_stalls(const stalls& of) {
  fmt::print("\n| stage or call | stalls | seconds |\n|---|---|---|\n");
  for (const auto& [stage, count] : of.counts())
    fmt::print("| {} | {} | {:.2f} |\n", stage, count.stalls, std::chrono::duration<double>(count.took).count());
}

bool print_memory(const std::vector<memory_course>& courses) {
  bool flat = true;
  fmt::print("\n| memory, bytes | first | lowest | highest | last | samples | may grow by | flat |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const memory_course& c : courses) {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", c.what, c.first, c.lowest, c.highest, c.last, c.samples,
               c.allowed_growth, c.is_flat() ? "yes" : "NO");
    flat = flat && c.is_flat();
  }
  return flat;
}

void soak(options o) {
  const auto device = gpu::device::parse(o.device);
  o.stalling.longest = std::chrono::milliseconds(o.longest_stall_ms);
  const stored_rows rows(o.folder, o.file_bytes);
  const std::uint64_t once = rows.checksum();
  const std::uint64_t round = rows.rows() * stored_rows::row_bytes;
  const std::uint64_t times = std::max<std::uint64_t>(1, (o.bytes + round - 1) / round);
  fmt::print("{}, {}, {} of files {} times\n\n", device.description(), o.order, penstock::format_bytes(round), times);

  if (o.spoil) o.stalling.spoilt = rows.plain_file();
  const auto seam = std::make_shared<stalls>(o.stalling);
  streaming streaming(rows, times, device, o, seam);
  std::atomic<std::uint64_t> streamed{0};
  // Memory that is taken once, and touched bit by bit, is all there when the rings have gone round some times.
  const std::uint64_t from =
      std::min<std::uint64_t>(std::max<std::uint64_t>(round * times / 20, 8 * o.budget_bytes), round * times / 2);
  memory_watch watch(
      courses_of(device, seam), [&] { return streamed.load(); }, from);
  const std::uint64_t found = streaming.run(streamed);
  const bool flat = print_memory(watch.end());

  print_stalls(*seam);
  const auto report = streaming.report();
  fmt::print("\n{}\n", to_text(report));
  const std::uint64_t expected = once * times;
  fmt::print("{} rows, {} bytes in {:.1f} s: {:.2f} GB/s; checksum on the device {:016x}, of the files {:016x}\n",
             report.rows, streamed.load(), report.seconds, static_cast<double>(streamed) / report.seconds / 1e9, found,
             expected);
  if (streamed != round * times) throw std::runtime_error("rows are missing");
  if (found != expected) throw std::runtime_error("the checksum on the device is not the files'");
  if (!flat) throw std::runtime_error("memory was not flat");
  fmt::print("flat, and equal\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Streams many bytes with stalls in every stage: memory must stay flat, and checksums be equal.",
               "penstock-soak-stream");
  options o;
  app.add_option("--device", o.device, "auto, host, cuda, cuda:N")->capture_default_str();
  app.add_option("--folder", o.folder, "Where the files are made; they are removed at the end")->capture_default_str();
  app.add_option("--order", o.order, "Order of the rows")
      ->check(CLI::IsMember({"sequential", "shuffled"}))
      ->capture_default_str();
  examples::add_bytes_option(app, "--bytes", o.bytes, "To stream, at least");
  examples::add_bytes_option(app, "--file-bytes", o.file_bytes, "Of the files, which are read again and again");
  examples::add_bytes_option(app, "--budget", o.budget_bytes, "Of device, of pinned and of host memory");
  app.add_option("--stall-every", o.stalling.every, "One use in so many stalls")->capture_default_str();
  app.add_option("--longest-stall-ms", o.longest_stall_ms, "A stall takes up to so many")->capture_default_str();
  app.add_option("--seed", o.stalling.seed, "Another seed, other stalls and another order")->capture_default_str();
  app.add_flag("--spoil", o.spoil, "Flip a bit of one read, to see that it is told");
  return examples::run_program(app, argc, argv, [&] { soak(o); });
}
