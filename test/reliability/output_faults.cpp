// Files that Penstock writes are there whole or not at all, whatever fails while they are written.

#include "../../examples/predict/prediction_file.hpp"
#include "../train/training_file.hpp"
#include "fault_table.hpp"
#include "interruptions.hpp"
#include "nth_use.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/output_file.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/seal.hpp>
#include <penstock/io/writer.hpp>

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::test;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// While it lives, the system lets no file grow beyond `bytes`: writes fail inside libhdf5, with EFBIG.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

/// A folder with one good file; writing it anew fails, and the good one must stay, alone and as it was.
struct output {
  std::string stage;
  fs::path file;
  std::function<void(penstock::fault_seam)> write;  ///< writes `file` anew
  std::function<bool()> is_whole;                   ///< whether `file` holds what was written
};

/// Put in its place, and then it is not known whether the folder that says so is on the disk.
bool is_of_folder(const outcome& how) { return how.says("it is written, but its folder"); }

bool names_file_and_cause(const outcome& how) {
  return how.name == "io::error" && (how.says(".h5") || how.says(".json")) && (how.says("space") || is_of_folder(how));
}

void check_that_only_the_old_one_is_there(const output& to, const std::string& before, std::size_t files) {
  BOOST_TEST((contents(to.file) == before), "the file that was there has changed");
  BOOST_TEST(files_in(to.file.parent_path()) == files, "something is left beside it");
}

void try_seam(const output& to, const std::string& fault, penstock::fault_site site, penstock::fault what) {
  const std::string before = contents(to.file);
  const std::size_t files = files_in(to.file.parent_path());
  const auto faults = std::make_shared<nth_use>(site, what);
  try_positions({.stage = to.stage,
                 .fault = fault,
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       const outcome how = outcome_of([&] {
                         to.write(faults);
                         return "written";
                       });
                       faults->disarm();
                       if (is_of_folder(how))
                         BOOST_TEST((to.is_whole() && files_in(to.file.parent_path()) == files), how.sentence);
                       else if (faults->happened())
                         check_that_only_the_old_one_is_there(to, before, files);
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = names_file_and_cause});
}

/// What the writer must go on with: signals that interrupt calls, writes that take less than they were given.
void try_hindrance(const output& to, const std::string& fault, penstock::fault_site site, penstock::fault what) {
  const auto faults = std::make_shared<nth_use>(site, what);
  try_positions({.stage = to.stage,
                 .fault = fault,
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       const outcome how = outcome_of([&] {
                         to.write(faults);
                         return to.is_whole() ? "written whole" : "written otherwise";
                       });
                       faults->disarm();
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = [](const outcome& how) { return how.name == "written whole"; }});
}

void try_all_sites(const output& to) {
  for (const auto site : {penstock::fault_site::open_file, penstock::fault_site::write_file,
                          penstock::fault_site::sync_file, penstock::fault_site::rename_file})
    try_hindrance(to, "EINTR", site, {.error = EINTR});
  try_hindrance(to, "a short write", penstock::fault_site::write_file, {.at_most = 3});
  try_seam(to, "open: EACCES", penstock::fault_site::open_file, {.error = EACCES});
  try_seam(to, "write: ENOSPC", penstock::fault_site::write_file, {.error = ENOSPC});
  try_seam(to, "write: EIO", penstock::fault_site::write_file, {.error = EIO});
  try_seam(to, "fsync: EIO", penstock::fault_site::sync_file, {.error = EIO});
  try_seam(to, "fsync: ENOSPC", penstock::fault_site::sync_file, {.error = ENOSPC});
  try_seam(to, "rename: EIO", penstock::fault_site::rename_file, {.error = EIO});
}

/// The system itself refuses more bytes, at many sizes: what fails is a write inside libhdf5.
void try_full_disk(const output& to) {
  const std::string before = contents(to.file);
  const std::size_t files = files_in(to.file.parent_path());
  bool happened = false;
  std::chrono::steady_clock::time_point since;
  constexpr std::int64_t steps = 24;
  try_positions({.stage = to.stage,
                 .fault = "the disk is full",
                 .run =
                     [&](std::int64_t n) {
                       const auto limit = before.size() * static_cast<std::size_t>(n) / steps;
                       happened = limit < before.size();
                       since = std::chrono::steady_clock::now();
                       const outcome how = outcome_of([&] {
                         const file_size_limit full(limit);
                         to.write(nullptr);
                         return "written";
                       });
                       if (happened) check_that_only_the_old_one_is_there(to, before, files);
                       return how;
                     },
                 .happened = [&] { return happened; },
                 .since = [&] { return since; },
                 .expected = names_file_and_cause,
                 .most = steps + 1});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(output_faults, *boost::unit_test::timeout(600))

BOOST_AUTO_TEST_CASE(a_checkpoint_that_cannot_be_written_leaves_the_one_before) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  const auto weights = run.weights();
  const output to{"checkpoint", data.path("c.h5"),
                  [&](penstock::fault_seam faults) { run.trainer.save(data.path("c.h5"), std::move(faults)); },
                  [&] {
                    run.trainer.resume(data.path("c.h5"));
                    return run.weights() == weights;
                  }};
  to.write(nullptr);
  try_all_sites(to);
  try_full_disk(to);
  run.trainer.resume(to.file);
  BOOST_TEST((run.weights() == weights));
}

BOOST_AUTO_TEST_CASE(predictions_that_cannot_be_written_leave_the_ones_before) {
  constexpr std::uint64_t rows = 4096;
  constexpr std::size_t columns = 10, piece = 256;
  const scratch_folder folder;
  const fs::path file = folder.path("predictions.h5");
  const std::vector<float> values(piece * columns, 0.25f);
  const output to{"prediction", file,
                  [&](penstock::fault_seam faults) {
                    examples::prediction_file out(file.string(), "/prediction", rows, columns, penstock::type::float32,
                                                  false, {}, std::move(faults));
                    for (std::uint64_t row = 0; row < rows; row += piece)
                      out.write(row, piece, std::as_bytes(std::span(values)));
                    out.commit("{}");
                  },
                  [&] {
                    const io::row_reader reader({{file, "/prediction"}});
                    std::vector<float> all(rows * columns);
                    reader.read(0, rows, std::as_writable_bytes(std::span(all)));
                    return all == std::vector<float>(rows * columns, 0.25f);
                  }};
  to.write(nullptr);
  try_all_sites(to);
  try_full_disk(to);
}

BOOST_AUTO_TEST_CASE(small_outputs_that_cannot_be_written_leave_the_ones_before) {
  const scratch_folder folder;
  const fs::path file = folder.path("results.json");
  const std::string text(3000, '7');
  const output to{"report", file, [&](penstock::fault_seam faults) { io::write_file(file, text, std::move(faults)); },
                  [&] { return contents(file) == text; }};
  to.write(nullptr);
  BOOST_TEST_REQUIRE(to.is_whole());
  std::ofstream(file) << std::string(4000, 'o');  // longer, so that what is left of it would show
  try_all_sites(to);
  try_seam(to, "write: nothing is taken", penstock::fault_site::write_file, {.at_most = 0});
  std::ofstream(file) << std::string(3000, 'o');
  try_full_disk(to);
}

/// It would be written again without end.
BOOST_AUTO_TEST_CASE(a_line_of_which_the_system_takes_nothing_is_an_error) {
  const scratch_folder folder;
  const fs::path file = folder.path("log.jsonl");
  const auto faults = std::make_shared<nth_use>(penstock::fault_site::write_file, penstock::fault{.at_most = 0});
  faults->arm(0);
  BOOST_CHECK_EXCEPTION(io::append_to_file(file, "text", io::durability::process, faults), io::error,
                        [](const io::error& e) { return e.context().system == ENOSPC; });
  BOOST_TEST(contents(file).empty());
}

/// What is sealed is read once more: the checksum is that of what lies in the file.
BOOST_AUTO_TEST_CASE(a_seal_of_what_cannot_be_read_is_an_error_and_signals_change_none) {
  using penstock::fault_site;
  const scratch_folder folder;
  const fs::path file = folder.path("sealed.h5");
  const auto write = [&](const penstock::fault_seam& faults) {
    io::writer to(file, faults);
    to.create("/x", penstock::type::int8, {3});
    to.commit_sealed();
  };
  write(nullptr);
  const std::string before = contents(file);
  const auto faults = std::make_shared<nth_use>(fault_site::read_file, penstock::fault{.error = EIO});
  const auto is_told = [](const outcome& how) {
    return how.name == "io::error" && how.says("sealed.h5") && how.says("Input/output error");
  };
  const auto try_reads = [&](const char* stage, const std::function<void()>& work) {
    try_positions({.stage = stage,
                   .fault = "EIO",
                   .run =
                       [&](std::int64_t n) {
                         faults->arm(n);
                         const outcome how = outcome_of([&] {
                           work();
                           return "right";
                         });
                         faults->disarm();
                         BOOST_TEST((contents(file) == before));
                         BOOST_TEST(files_in(file.parent_path()) == 1u);
                         return how;
                       },
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected = is_told});
  };
  try_reads("seal", [&] { write(faults); });
  try_reads("check a seal", [&] { io::check_seal(file, faults); });
  const auto seals = [&](const penstock::fault_seam& some) {
    write(some);
    return contents(file) == before;
  };
  const auto checks = [&](const penstock::fault_seam& some) { return io::check_seal(file, some); };
  check_that_interrupted_calls_are_made_again("seal", fault_site::read_file, seals);
  check_that_interrupted_calls_are_made_again("check a seal: open", fault_site::open_file, checks);
  check_that_interrupted_calls_are_made_again("check a seal: read", fault_site::read_file, checks);
  check_that_short_calls_are_gone_on_with("seal", fault_site::read_file, 7, seals);
  check_that_short_calls_are_gone_on_with("check a seal", fault_site::read_file, 7, checks);
}

BOOST_AUTO_TEST_CASE(a_file_is_on_the_disk_before_it_has_its_name_and_its_name_when_the_call_returns) {
  using penstock::fault_site;
  struct all_sites final : penstock::fault_injector {
    std::vector<fault_site> asked;
    penstock::fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
      asked.push_back(site);
      return {};
    }
  };
  const scratch_folder folder;
  const auto last_of = [](const std::shared_ptr<all_sites>& sites) {
    return std::vector(sites->asked.end() - std::min<std::ptrdiff_t>(4, std::ssize(sites->asked)), sites->asked.end());
  };
  const std::vector<fault_site> expected{fault_site::write_file, fault_site::sync_file, fault_site::rename_file,
                                         fault_site::sync_file};  // the file, its folder
  const auto of_report = std::make_shared<all_sites>(), of_file = std::make_shared<all_sites>();
  io::write_file(folder.path("results.json"), "text", of_report);
  BOOST_TEST((last_of(of_report) == expected));
  io::writer to(folder.path("sealed.h5"), of_file);
  to.create("/x", penstock::type::int8, {3});
  to.commit_sealed();
  BOOST_TEST((last_of(of_file) == expected));
  const auto of_log = std::make_shared<all_sites>();
  io::append_to_file(folder.path("log.jsonl"), "text", io::durability::disk, of_log);
  BOOST_TEST((of_log->asked == std::vector{fault_site::open_file, fault_site::write_file, fault_site::sync_file}));
}

BOOST_AUTO_TEST_CASE(calls_that_signals_interrupt_are_made_again_and_short_writes_are_gone_on_with) {
  using penstock::fault_site;
  const scratch_folder folder;
  const std::vector<std::int32_t> values(1000, 7);
  const auto writes = [&](penstock::fault_seam faults) {
    const fs::path file = folder.path("sealed.h5");
    fs::remove(file);
    io::writer to(file, std::move(faults));
    to.create("/x", penstock::type::int32, {values.size()}, {.chunk_shape = {100}});
    to.write_rows("/x", 0, values.size(), std::as_bytes(std::span(values)));
    to.commit_sealed();
    std::vector<std::int32_t> found(values.size());
    io::row_reader({{file, "/x"}}).read(0, found.size(), std::as_writable_bytes(std::span(found)));
    return io::check_seal(file) && found == values;
  };
  const std::string text = "{\"some\": \"text\"}\n";
  const fs::path report = folder.path("results.json"), log = folder.path("log.jsonl");
  const auto reports = [&](penstock::fault_seam faults) {
    fs::remove(report);
    io::write_file(report, text, std::move(faults));
    return contents(report) == text;
  };
  const auto appends = [&](penstock::fault_seam faults) {
    const std::string before = fs::exists(log) ? contents(log) : std::string();
    io::append_to_file(log, text, io::durability::disk, faults);
    return contents(log) == before + text;
  };
  for (const auto& [stage, work] :
       {std::pair<const char*, std::function<bool(penstock::fault_seam)>>{"sealed file", writes},
        {"report", reports},
        {"log", appends}}) {
    for (const auto site : {fault_site::open_file, fault_site::write_file, fault_site::sync_file})
      check_that_interrupted_calls_are_made_again(stage, site, work);
    if (stage != std::string("log")) check_that_interrupted_calls_are_made_again(stage, fault_site::rename_file, work);
    check_that_short_calls_are_gone_on_with(stage, fault_site::write_file, 7, work);
  }
}

BOOST_AUTO_TEST_SUITE_END()
