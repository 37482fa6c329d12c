#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>

#include <atomic>
#include <cstdlib>
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

}  // namespace

// Every allocation of the program passes here, so that bulk ones can be counted.
void* operator new(std::size_t bytes) {
  if (bytes >= bulk_bytes) ++bulk_allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
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
