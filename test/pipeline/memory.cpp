#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

constexpr std::size_t bulk_bytes = 64 << 10;
std::atomic<std::uint64_t> bulk_allocations{0};

/// Counts allocations of device, pinned and host memory that go through the seam.
class allocation_counter : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    using enum penstock::fault_site;
    if (site == allocate_host || site == allocate_pinned || site == allocate_device) ++count;
    return {};
  }
  std::atomic<int> count{0};
};

/// What the process, and the device, hold.
struct held {
  std::size_t resident_bytes = 0;
  std::size_t heap_bytes = 0;    ///< in use; 0 where the C library's allocator is not used
  std::size_t device_bytes = 0;  ///< of everybody; 0 on the host
  int allocations = 0;           ///< of planned memory
};

held held_now(gpu::device device, const allocation_counter& counter) {
  held now;
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages >> now.resident_bytes;
  now.resident_bytes *= static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  now.heap_bytes = ::mallinfo2().uordblks;
  if (device.is_cuda()) {
    const auto size = gpu::memory_of(device);
    now.device_bytes = size.total_bytes - size.free_bytes;
  }
  now.allocations = counter.count;
  return now;
}

}  // namespace

// Every allocation of the program passes here, so that bulk ones can be counted. Not inlined, or the compiler takes
// what malloc gave for something else's.
void* operator new(std::size_t bytes) {
  if (bytes >= bulk_bytes) ++bulk_allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {  // AddressSanitizer has one of its own
  if (bytes >= bulk_bytes) ++bulk_allocations;
  return std::malloc(bytes ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_SUITE(memory)

BOOST_DATA_TEST_CASE(nothing_in_bulk_is_allocated_after_the_first_batch,
                     data::make(penstock::test::devices()) * data::make({false, true}), name, shuffle) {
  const small_file file(20000, 256, 1);
  const auto faults = std::make_shared<allocation_counter>();
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 4, .run_rows = 256, .pool_rows = 2048}) : pp::sequential{};
  auto pipeline = (pp::read(file.all(), order) | penstock::fault_seam(faults) | pp::batched({.rows = 128}))
                      .build(gpu::device::parse(name), {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB});
  std::uint64_t bulk = 0;
  int planned = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 3)) {
    if (batch.epoch() == 0 && batch.index() == 0) {
      bulk = bulk_allocations;
      planned = faults->count;
    }
  }
  BOOST_TEST(bulk_allocations == bulk);
  BOOST_TEST(faults->count == planned);
  BOOST_TEST(planned > 0);
}

// Where batches 0 of the fourth and of the last epoch are given, as much is on its way. What other processes do on the
// device is not Penstock's: its slab is counted by the seam, and the driver's own account may grow by little.
BOOST_DATA_TEST_CASE(fifty_epochs_hold_no_more_memory_than_three, data::make(penstock::test::devices()), name) {
  constexpr std::uint64_t epochs = 50;
  const small_file file(20000, 256, 1);
  const auto faults = std::make_shared<allocation_counter>();
  const auto device = gpu::device::parse(name);
  auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 4, .run_rows = 256, .pool_rows = 2048}) |
                   penstock::fault_seam(faults) | pp::batched({.rows = 128}))
                      .build(device, {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB});
  held after_three, after_fifty;
  std::uint64_t rows = 0;
  for (const pp::batch& batch : pipeline.epochs(0, epochs)) {
    rows += batch.valid_rows();
    if (batch.index() > 0) continue;
    if (batch.epoch() == 3) after_three = held_now(device, *faults);
    if (batch.epoch() == epochs - 1) after_fifty = held_now(device, *faults);
  }
  BOOST_TEST(rows == epochs * 20000);
  BOOST_TEST_MESSAGE(name << ": resident " << after_three.resident_bytes << " then " << after_fifty.resident_bytes
                          << ", heap " << after_three.heap_bytes << " then " << after_fifty.heap_bytes << ", device "
                          << after_three.device_bytes << " then " << after_fifty.device_bytes << " bytes");
  BOOST_TEST(after_fifty.allocations == after_three.allocations);
  BOOST_TEST(after_fifty.heap_bytes <= after_three.heap_bytes + 64_KiB);
  BOOST_TEST(after_fifty.resident_bytes <= after_three.resident_bytes + 1_MiB);
  BOOST_TEST(after_fifty.device_bytes <= after_three.device_bytes + 2_MiB);
}

BOOST_AUTO_TEST_CASE(the_ledger_lists_what_is_held_within_the_budget) {
  const small_file file(20000, 256, 1);
  const gpu::budget limits{.device_bytes = 4_MiB, .pinned_bytes = 2_MiB, .host_bytes = 32_MiB};
  auto pipeline = (pp::read(file.all()) | pp::batched({.rows = 128})).build(gpu::device::host(), limits);
  const gpu::ledger& ledger = pipeline.plan().ledger;
  BOOST_TEST(ledger.fits(limits));
  BOOST_TEST(ledger.total(gpu::memory_kind::device) > 0u);
  BOOST_TEST(ledger.total(gpu::memory_kind::host) > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
