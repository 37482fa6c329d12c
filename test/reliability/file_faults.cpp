// What happens to files while a pipeline streams them: cut, replaced, damaged chunks, with either policy.

#include "../pipeline/small_file.hpp"
#include "../support/damaged_chunks.hpp"
#include "fault_table.hpp"
#include "nth_use.hpp"

#include <penstock/pipeline/description.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace fs = std::filesystem;
namespace gpu = penstock::gpu;
namespace pp = penstock::pipeline;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using namespace penstock::test;

namespace {

constexpr std::uint64_t file_rows = 1500, chunk_rows = 64;
const gpu::budget enough{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const auto every_device = data::make(devices());

/// /wide and /image, both compressed, in an order that comes to each chunk more than once.
pp::pipeline build(const small_file& file, const std::string& device, pp::damage_policy policy,
                   penstock::fault_seam faults = {}) {
  auto source = pp::source{}
                    .field("wide", file.at("/wide"))
                    .field("image", file.at("/image"), {.as = penstock::type::float32, .scale = 2, .shift = 1});
  return (pp::read(source.damaged({.policy = policy}), pp::shuffled{.seed = 2, .run_rows = 16, .pool_rows = 128}) |
          std::move(faults) | pp::transport({.block_bytes = 8192, .slots = 4, .threads = 2}) |
          pp::batched({.rows = 50, .last = pp::last_batch::pad}))
      .build(gpu::device::parse(device), enough);
}

/// One epoch, values checked; `at_batch` runs before each batch.
std::string epoch(
    pp::pipeline& from, const std::function<void()>& at_batch = [] {}) {
  std::vector<std::uint64_t> rows;
  auto range = from.epochs(0, 1);
  for (;;) {
    at_batch();
    const pp::batch batch = range.next();
    if (!batch) break;
    check(batch, rows);
  }
  return rows.size() == file_rows ? "right rows" : "rows are missing";
}

bool is_read_error(const outcome& how) {
  return (how.name == "pipeline::error (read)" || how.name == "io::error") && how.says(".h5") && how.says("rows ") &&
         (how.says("/wide") || how.says("/image"));
}

/// Does something to the file before the n-th batch; then a pipeline on a healthy one must work.
void try_change(const std::string& device, const std::string& fault, const std::function<void(const fs::path&)>& change,
                std::function<bool(const outcome&)> expected) {
  bool changed = false;
  std::chrono::steady_clock::time_point since;
  try_positions({.stage = "a pipeline's file",
                 .fault = fault,
                 .on = device,
                 .run =
                     [&](std::int64_t n) {
                       const small_file file(file_rows, chunk_rows, 1);
                       auto pipeline = build(file, device, pp::damage_policy::stop);
                       changed = false;
                       std::int64_t batch = 0;
                       return outcome_of([&] {
                         return epoch(pipeline, [&] {
                           if (batch++ != n) return;
                           change(file.path());
                           since = std::chrono::steady_clock::now();
                           changed = true;
                         });
                       });
                     },
                 .happened = [&] { return changed; },
                 .since = [&] { return since; },
                 .expected = std::move(expected),
                 .afterwards =
                     [&] {
                       const small_file healthy(file_rows, chunk_rows, 1);
                       auto pipeline = build(healthy, device, pp::damage_policy::stop);
                       BOOST_TEST(epoch(pipeline) == "right rows");
                     },
                 .most = 40});
}

void flip_a_bit(std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{4}; }
void fill_with_garbage(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
}

/// The rows that a report lists of each field.
std::map<std::string, std::set<std::uint64_t>> listed_rows(const pp::pipeline_report& report) {
  std::map<std::string, std::set<std::uint64_t>> rows;
  for (const pp::damaged_rows& part : report.damaged)
    for (std::uint64_t n = 0; n < part.count; ++n) rows[part.field].insert(part.first + n);
  return rows;
}

/// What an epoch that may leave rows out gave.
struct masked_epoch {
  std::uint64_t rows = 0;
  std::set<std::uint64_t> masked{};
  std::map<std::string, std::set<std::uint64_t>>
      zeros{};        ///< rows of each field that are zeros where stored ones differ
  bool right = true;  ///< every other value is what is stored
  bool padding_masked = true;
};

masked_epoch read_with_mask(pp::pipeline& from) {
  masked_epoch all;
  for (const pp::batch& batch : from.epochs(0, 1)) {
    const auto intact = fetch<float>(batch, "intact");
    const auto ids = batch.row_ids();
    const auto compare = [&](const char* field, std::size_t columns, float zero, const auto& stored) {
      const auto values = fetch<float>(batch, field);
      for (std::size_t n = 0; n < ids.size(); ++n) {
        const auto is = [&](const auto& value) {
          for (std::size_t i = 0; i < columns; ++i)
            if (values[n * columns + i] != value(i)) return false;
          return true;
        };
        if (is([&](std::size_t i) { return stored(ids[n], i); })) continue;
        if (is([&](std::size_t) { return zero; }))
          all.zeros[field].insert(ids[n]);
        else
          all.right = false;
      }
    };
    compare("wide", 33, 0, [](std::uint64_t row, std::size_t i) { return static_cast<float>(row * 33 + i); });
    compare("image", 12, 1 /* after scale and shift */,
            [](std::uint64_t row, std::size_t i) { return 2 * static_cast<float>((row * 12 + i) % 251) + 1; });
    for (std::size_t n = 0; n < ids.size(); ++n)
      if (intact[n] == 0) all.masked.insert(ids[n]);
    for (std::size_t n = ids.size(); n < intact.size(); ++n) all.padding_masked = all.padding_masked && intact[n] == 0;
    all.rows += ids.size();
  }
  return all;
}

/// One epoch that may leave rows out: each value is what is stored, or its row is masked, the damaged field zero, and
/// in the report; and no row is masked or in the report but these.
std::string epoch_with_mask(pp::pipeline& from) {
  const masked_epoch all = read_with_mask(from);
  const auto report = from.report();
  const auto listed = listed_rows(report);
  std::set<std::uint64_t> listed_of_any;
  for (const auto& [field, rows] : listed) listed_of_any.insert(rows.begin(), rows.end());
  if (all.rows != file_rows) return "rows are missing";
  if (!all.right) return "a wrong row, unnoticed";
  if (!all.padding_masked) return "padding that is not masked";
  if (all.zeros != listed) return "other zeros than the report lists";
  if (all.masked != listed_of_any) return "other rows are masked than the report lists";
  if (report.damaged_row_count != all.masked.size()) return "another number of rows than is masked";
  return all.masked.empty() ? "right rows" : "rows masked and listed";
}

/// The n-th read of a compressed chunk gives other bytes. The same pipeline goes on afterwards, where it was built.
void try_chunks(const std::string& device, const std::string& fault, nth_use::damage change, pp::damage_policy policy,
                const std::function<bool(const outcome&)>& expected) {
  const small_file file(file_rows, chunk_rows, 1);
  const auto faults = std::make_shared<nth_use>(std::move(change));
  const bool skips = policy == pp::damage_policy::skip;
  try_positions({.stage = skips ? "decode, policy skip" : "decode, policy stop",
                 .fault = fault,
                 .on = device,
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       std::optional<pp::pipeline> pipeline;
                       const outcome how = outcome_of([&] {
                         pipeline.emplace(build(file, device, policy, faults));
                         return skips ? epoch_with_mask(*pipeline) : epoch(*pipeline);
                       });
                       faults->disarm();
                       if (pipeline && !skips) BOOST_TEST(epoch(*pipeline) == "right rows");
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = expected,
                 .most = 120});
}

/// A dataset /x of 1 + row, with gzip and a filter that only libhdf5 reads: it is looked at first. Gone with the
/// object.
struct looked_at_file {
  fs::path path = fs::temp_directory_path() / ("penstock-looked-at-" + std::to_string(::getpid()) + ".h5");

  looked_at_file() {
    run_python("import h5py, numpy as np\nwith h5py.File('" + path.string() +
               "', 'w') as f:\n  f.create_dataset('x', data=1 + np.arange(" + std::to_string(file_rows) +
               ", dtype='i4'), chunks=(" + std::to_string(chunk_rows) + ",), scaleoffset=0, compression='gzip')\n");
  }
  ~looked_at_file() { fs::remove(path); }
  looked_at_file(const looked_at_file&) = delete;
  looked_at_file& operator=(const looked_at_file&) = delete;

  /// Damaged rows are left out.
  pp::pipeline build(const std::string& device, penstock::fault_seam faults) const {
    auto source = pp::source{}.field("x", {{.file = path, .dataset = "/x"}});
    return (pp::read(source.damaged({.policy = pp::damage_policy::skip})) | std::move(faults) |
            pp::transport({.block_bytes = 1024, .slots = 4, .threads = 2}) |
            pp::batched({.rows = 50, .last = pp::last_batch::pad}))
        .build(gpu::device::parse(device), enough);
  }
};

std::string epoch_of_numbers(pp::pipeline& from) {
  std::uint64_t rows = 0;
  for (const pp::batch& batch : from.epochs(0, 1)) {
    const auto x = fetch<std::int32_t>(batch, "x");
    const auto ids = batch.row_ids();
    for (std::size_t n = 0; n < ids.size(); ++n, ++rows)
      if (x[n] != static_cast<std::int32_t>(1 + ids[n])) return "a row is masked or wrong";
  }
  if (from.report().damaged_row_count > 0) return "rows are listed as damaged";
  return rows == file_rows ? "right rows" : "rows are missing";
}

void try_want(const std::string& device, const std::string& fault, int code) {
  const looked_at_file file;
  const auto faults = std::make_shared<nth_use>(penstock::fault_site::read_file, penstock::fault{.error = code});
  const auto is_told = [](const outcome& how) {
    return how.name == "pipeline::error (read)" && how.says(".h5:/x") && how.says("rows ");
  };
  try_positions({.stage = "read by libhdf5, policy skip",
                 .fault = fault,
                 .on = device,
                 .run =
                     [&](std::int64_t n) {
                       auto pipeline = file.build(device, faults);
                       faults->arm(n);
                       const outcome how = outcome_of([&] { return epoch_of_numbers(pipeline); });
                       faults->disarm();
                       BOOST_TEST(epoch_of_numbers(pipeline) == "right rows");
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = is_told,
                 .most = 120});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(file_faults, *boost::unit_test::timeout(600))

BOOST_DATA_TEST_CASE(a_file_cut_while_a_pipeline_reads_it_is_an_error_that_names_the_rows, every_device, name) {
  const auto cut = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 8); };
  try_change(name, "truncated", cut, [](const outcome& how) {
    return how.name == "right rows" /* all were read by then */ ||
           (is_read_error(how) && (how.says("truncated") || how.says("replaced")));
  });
}

BOOST_DATA_TEST_CASE(a_file_replaced_while_a_pipeline_reads_it_is_read_as_it_was, every_device, name) {
  const auto replace = [](const fs::path& path) {
    const small_file other(10);
    fs::rename(other.path(), path);
  };
  try_change(name, "replaced", replace, [](const outcome& how) {
    return how.name == "right rows" || (is_read_error(how) && how.says("replaced"));
  });
}

BOOST_DATA_TEST_CASE(a_file_that_became_a_pipe_holds_nobody_up, every_device, name) {
  const small_file file(file_rows, chunk_rows, 1);
  auto pipeline = build(file, name, pp::damage_policy::stop);
  fs::remove(file.path());
  BOOST_TEST_REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0);
  const auto since = std::chrono::steady_clock::now();
  const outcome how = outcome_of([&] { return epoch(pipeline); });
  fault_table::of_this_program().note("a pipeline's file", "a pipe takes its place", name, how, since);
  check_promptness(how, since);
  BOOST_TEST((is_read_error(how) && how.says("replaced")), how.name);
}

BOOST_DATA_TEST_CASE(a_damaged_chunk_is_never_replaced_silently_whatever_the_policy, every_device, name) {
  const auto told = [](const outcome& how) { return how.name == "right rows" /* read anew */ || is_read_error(how); };
  const auto masked = [](const outcome& how) {
    return how.name == "right rows" || how.name == "rows masked and listed";
  };
  for (const auto& [fault, change] : {std::pair<const char*, nth_use::damage>{"a flipped bit", flip_a_bit},
                                      std::pair<const char*, nth_use::damage>{"garbage", fill_with_garbage}}) {
    try_chunks(name, fault, change, pp::damage_policy::stop, told);
    try_chunks(name, fault, change, pp::damage_policy::skip, masked);
  }
}

/// What the system does not give while a chunk is looked at or read says nothing of what is stored.
BOOST_DATA_TEST_CASE(rows_that_want_memory_or_descriptors_are_never_masked, every_device, name) {
  try_want(name, "ENOMEM", ENOMEM);
  try_want(name, "EMFILE", EMFILE);
}

BOOST_AUTO_TEST_SUITE_END()
