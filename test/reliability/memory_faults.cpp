// Host memory that is refused, wherever the ledger has some: an error that says so, nothing left, and the next epoch
// works.

#include "../pipeline/small_file.hpp"
#include "../support/damaged_chunks.hpp"
#include "fault_table.hpp"

#include <penstock/config.hpp>
#include <penstock/fault.hpp>
#include <penstock/pipeline/description.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>

namespace fs = std::filesystem;
namespace gpu = penstock::gpu;
namespace pp = penstock::pipeline;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using namespace penstock::test;

namespace {

constexpr std::uint64_t file_rows = 600;
const gpu::budget enough{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const auto every_device = data::make(devices());

/// Refuses the n-th piece of host memory that is asked for, and remembers the names of all.
class refusal final : public penstock::fault_injector {
 public:
  void arm(std::int64_t n) { left_ = n, happened_ = false; }
  void disarm() { left_ = -1; }
  bool happened() const { return happened_; }
  std::chrono::steady_clock::time_point since() const { return since_; }
  const std::set<std::string>& names() const { return names_; }

  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t bytes) override {
    if (site != penstock::fault_site::allocate_host) return {};
    const std::lock_guard lock(mutex_);
    names_.emplace(what);
    if (bytes == 0 || left_ < 0 || left_-- != 0) return {};
    since_ = std::chrono::steady_clock::now();
    happened_ = true;
    return {.error = ENOMEM};
  }

 private:
  std::mutex mutex_;
  std::int64_t left_ = -1;
  bool happened_ = false;
  std::chrono::steady_clock::time_point since_;
  std::set<std::string> names_;
};

/// A dataset for each way of reading, the value of row n being n: /chunked with gzip, /locked with gzip and a filter
/// that only libhdf5 reads, /text of variable length, /weight. Gone with the object.
struct many_ways {
  fs::path path = fs::temp_directory_path() / ("penstock-memory-" + std::to_string(::getpid()) + ".h5");

  many_ways() {
    run_python("import h5py, numpy as np\nn = np.arange(" + std::to_string(file_rows) + ")\nwith h5py.File('" +
               path.string() +
               "', 'w') as f:\n"
               "  f.create_dataset('chunked', data=n.astype('f4').repeat(8).reshape(-1, 8), chunks=(32, 8), "
               "compression='gzip')\n"
               "  f.create_dataset('locked', data=n.astype('i4'), chunks=(32,), scaleoffset=0, compression='gzip')\n"
               "  f.create_dataset('text', data=[str(k % 3) for k in n], dtype=h5py.string_dtype())\n"
               "  f['class'] = n.astype('i4') % 3\n"
               "  f['weight'] = np.ones(len(n), 'f8')\n");
  }
  ~many_ways() { fs::remove(path); }
  many_ways(const many_ways&) = delete;
  many_ways& operator=(const many_ways&) = delete;

  /// All of them.
  pp::source source() const {
    pp::source all;
    for (const char* name : {"chunked", "locked", "text", "class", "weight"})
      all.field(name, {{.file = path, .dataset = std::string("/") + name}});
    return all;
  }
};

/// One epoch: of `rows` rows, each what its number says.
std::string epoch(pp::pipeline& from, std::uint64_t rows) {
  std::uint64_t seen = 0;
  for (const pp::batch& batch : from.epochs(0, 1)) {
    const auto chunked = fetch<float>(batch, "chunked");
    const auto locked = fetch<std::int32_t>(batch, "locked"), text = fetch<std::int32_t>(batch, "text");
    const auto ids = batch.row_ids();
    for (std::size_t n = 0; n < ids.size(); ++n, ++seen)
      if (chunked[n * 8] != static_cast<float>(ids[n]) || locked[n] != static_cast<std::int32_t>(ids[n]) ||
          text[n] != static_cast<std::int32_t>(ids[n] % 3))
        return "wrong rows";
  }
  return seen == rows ? "right rows" : "rows are missing";
}

/// One right sentence: by whom, of which file or of what memory.
bool says_what_is_refused(const outcome& how) {
  if (!how.says("there is not enough host memory")) return false;
  if (how.name == "pipeline::error (build)") return how.says("'pipeline: ") && how.says("takes");
  return (how.name == "io::error" || how.name == "pipeline::error (read)") && how.says("penstock-memory") &&
         how.says(".h5:/");
}

/// Refuses each piece that building and an epoch ask for. `items`: what has to be among them.
void try_each(const std::string& device, const std::string& kind, const pp::source& source,
              const pp::order_options& order, std::uint64_t rows, const std::set<std::string>& items) {
  const auto refused = std::make_shared<refusal>();
  const auto build = [&] {
    return (pp::read(source, order) | penstock::fault_seam(refused) | pp::traced({.bytes = 64_KiB}) |
            pp::transport({.block_bytes = 8192, .slots = 4, .threads = 2}) | pp::batched({.rows = 50}))
        .build(gpu::device::parse(device), enough);
  };
  try_positions({.stage = "host memory, " + kind,
                 .fault = "allocation refused",
                 .on = device,
                 .run =
                     [&](std::int64_t n) {
                       refused->arm(n);
                       std::optional<pp::pipeline> pipeline;
                       const outcome how = outcome_of([&] {
                         pipeline.emplace(build());
                         return epoch(*pipeline, rows);
                       });
                       refused->disarm();
                       if (pipeline && refused->happened()) BOOST_TEST(epoch(*pipeline, rows) == "right rows");
                       return how;
                     },
                 .happened = [&] { return refused->happened(); },
                 .since = [&] { return refused->since(); },
                 .expected = says_what_is_refused,
                 .afterwards =
                     [&] {
                       auto anew = build();
                       BOOST_TEST(epoch(anew, rows) == "right rows");
                     }});
  for (const std::string& item : items) BOOST_TEST(refused->names().contains(item), item << " is not asked for");
}

const std::set<std::string> of_readers {
  "chunk index", "staged datasets", "read scratch",
#if PENSTOCK_HAS_LIBDEFLATE
      "chunks that are looked at",
#endif
      "decoded chunks", "libhdf5's chunk caches", "pipeline: trace"
};

std::set<std::string> with(std::set<std::string> all, const char* item) {
  all.insert(item);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_faults, *boost::unit_test::timeout(600))

BOOST_DATA_TEST_CASE(host_memory_of_readers_and_of_the_trace_may_be_refused, every_device, name) {
  const many_ways file;
  try_each(name, "readers and trace", file.source(), pp::sequential{}, file_rows, of_readers);
}

BOOST_DATA_TEST_CASE(host_memory_of_selections_and_of_drawn_rows_may_be_refused, every_device, name) {
  const many_ways file;
  auto some = file.source();
  some.select(pp::where("class", [](double value) { return value == 1; }));
  try_each(name, "a selection", some, pp::sequential{}, file_rows / 3,
           with(of_readers, "pipeline: rows that take part"));
  try_each(name, "drawn by weight", file.source(), pp::weighted{.seed = 1, .field = "weight"}, file_rows,
           with(of_readers, "pipeline: weights of rows"));
  try_each(name, "drawn by class", file.source(), pp::class_balanced{.seed = 1, .field = "class"}, file_rows,
           with(of_readers, "pipeline: rows by class"));
}

BOOST_AUTO_TEST_SUITE_END()
