#include <penstock/gpu/memory.hpp>

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/gpu.hpp"
#include "faults.hpp"

using namespace penstock;
using gpu::memory_kind;

BOOST_TEST_DONT_PRINT_LOG_VALUE(penstock::gpu::device)

namespace {

gpu::ledger two_rings_and_slots() {
  gpu::ledger items;
  items.add(memory_kind::device, "x", 1000);
  items.add(memory_kind::pinned, "slots", 3_MiB);
  items.add(memory_kind::device, "y", 8);
  items.add(memory_kind::host, "readers", 4096);
  return items;
}

void check_layout(gpu::device d) {
  const gpu::memory memory(d, two_rings_and_slots());
  const auto x = memory.at(memory_kind::device, "x"), y = memory.at(memory_kind::device, "y");
  BOOST_TEST(memory.device() == d);
  BOOST_TEST(x.size() == 1000U);
  BOOST_TEST(y.size() == 8U);
  BOOST_TEST(static_cast<std::size_t>(y.data() - x.data()) == 1024U);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(x.data()) % 256 == 0U);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(memory.at(memory_kind::pinned, "slots").data()) % 4096 == 0U);
  BOOST_TEST(memory.bytes(memory_kind::device) == 1536U);
  BOOST_TEST(memory.bytes(memory_kind::pinned) == 3_MiB);
  BOOST_TEST(memory.bytes(memory_kind::host) == 0U);
  BOOST_TEST(memory.items().items().size() == 4U);
}

// Up, across and down again: what comes back is what was sent, and fill() sets every byte.
void check_copies(gpu::device d) {
  constexpr std::size_t bytes = 100000;
  gpu::ledger items;
  for (const char* name : {"a", "b"}) items.add(memory_kind::device, name, bytes);
  for (const char* name : {"in", "out"}) items.add(memory_kind::pinned, name, bytes);
  const gpu::memory memory(d, items);
  const auto in = memory.at(memory_kind::pinned, "in"), out = memory.at(memory_kind::pinned, "out");
  const auto a = memory.at(memory_kind::device, "a"), b = memory.at(memory_kind::device, "b");
  for (std::size_t n = 0; n < bytes; ++n) in[n] = static_cast<std::byte>(n * 7 % 251);

  const gpu::stream stream(d);
  copy(stream, a.data(), in.data(), bytes);
  fill(stream, b.data(), 0x5a, bytes);
  copy(stream, b.data() + 1, a.data() + 1, bytes - 2);
  copy(stream, out.data(), b.data(), bytes);
  copy(stream, out.data(), nullptr, 0);
  stream.synchronize();
  BOOST_TEST(out.front() == std::byte{0x5a});
  BOOST_TEST(out.back() == std::byte{0x5a});
  BOOST_TEST(std::memcmp(out.data() + 1, in.data() + 1, bytes - 2) == 0);
}

void check_refusal(gpu::device d, fault_site site, int error, const std::string& words) {
  const auto faults = std::make_shared<test::failing_site>(site, error);
  BOOST_CHECK_EXCEPTION(gpu::memory(d, two_rings_and_slots(), faults), gpu::error, [&](const gpu::error& e) {
    return e.code() == error && std::string(e.what()).find(words) != std::string::npos;
  });
}

}  // namespace

BOOST_TEST_DONT_PRINT_LOG_VALUE(std::byte)

BOOST_AUTO_TEST_SUITE(memories)

BOOST_AUTO_TEST_CASE(items_are_fixed_parts_of_their_slabs) { check_layout(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(items_are_fixed_parts_of_their_slabs_on_cuda, test::on_gpu()) { check_layout(test::first_gpu()); }

BOOST_AUTO_TEST_CASE(bytes_are_copied_and_filled_in_order) { check_copies(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(bytes_are_copied_and_filled_in_order_on_cuda, test::on_gpu()) { check_copies(test::first_gpu()); }

BOOST_AUTO_TEST_CASE(an_unknown_item_is_refused_by_name) {
  const gpu::memory memory(gpu::device::host(), two_rings_and_slots());
  BOOST_CHECK_THROW(memory.at(memory_kind::device, "z"), std::invalid_argument);
  BOOST_CHECK_THROW(memory.at(memory_kind::pinned, "x"), std::invalid_argument);
  BOOST_CHECK_THROW(memory.at(memory_kind::host, "readers"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(phases_take_turns_in_a_part_of_the_whole) {
  using gpu::memory_kind;
  gpu::ledger shared, all, other;
  shared.add(memory_kind::device, "ring", 1000);
  shared.add(memory_kind::device, "pool", 3000);
  all.add(memory_kind::device, "weights", 100);
  all.add(shared);
  other.add(memory_kind::device, "ring", 2000);
  other.add(memory_kind::device, "staging", 1500);
  const auto whole = std::make_shared<gpu::memory>(gpu::device::host(), all);
  const gpu::memory part(whole, shared, other);
  BOOST_TEST(part.at(memory_kind::device, "ring").data() == whole->at(memory_kind::device, "ring").data());
  BOOST_TEST(part.at(memory_kind::device, "staging").data() == whole->at(memory_kind::device, "ring").data() + 2048);
  other.add(memory_kind::device, "more", 600);  // 2048 + 1536 + 1024 bytes in 1024 + 3072
  BOOST_CHECK_THROW(gpu::memory(whole, shared, other), std::invalid_argument);
  gpu::ledger stranger;
  stranger.add(memory_kind::device, "weights", 100);
  stranger.add(memory_kind::device, "pool", 3000);
  BOOST_CHECK_THROW(gpu::memory(whole, stranger, shared), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(an_empty_ledger_allocates_nothing) {
  const auto faults = std::make_shared<test::failing_site>(fault_site::allocate_device, ENOMEM);
  const gpu::memory memory(gpu::device::host(), {}, faults);
  BOOST_TEST(memory.bytes(memory_kind::device) == 0U);
  BOOST_TEST(faults->asked().empty());
}

BOOST_AUTO_TEST_CASE(a_move_keeps_the_addresses) {
  gpu::memory first(gpu::device::host(), two_rings_and_slots());
  const auto x = first.at(memory_kind::device, "x");
  gpu::memory second(std::move(first));
  BOOST_TEST(second.at(memory_kind::device, "x").data() == x.data());
  std::memset(x.data(), 1, x.size());
  second = gpu::memory(gpu::device::host(), two_rings_and_slots());
  std::memset(second.at(memory_kind::device, "x").data(), 1, x.size());
}

BOOST_AUTO_TEST_CASE(a_refused_slab_is_named_with_its_bytes) {
  check_refusal(gpu::device::host(), fault_site::allocate_device, ENOMEM,
                "cannot allocate the device slab of 1.50 KiB on host: Cannot allocate memory");
  check_refusal(gpu::device::host(), fault_site::allocate_pinned, ENOMEM,
                "cannot allocate the pinned slab of 3.00 MiB");
}

BOOST_AUTO_TEST_CASE(a_refused_slab_is_named_with_its_bytes_on_cuda, test::on_gpu()) {
  constexpr int out_of_memory = 2;  // cudaErrorMemoryAllocation
  check_refusal(test::first_gpu(), fault_site::allocate_device, out_of_memory,
                "cannot allocate the device slab of 1.50 KiB for cuda:0: out of memory (cudaErrorMemoryAllocation)");
  check_refusal(test::first_gpu(), fault_site::allocate_pinned, out_of_memory,
                "cannot allocate the pinned slab of 3.00 MiB");
}

// The label keeps it out of runs under compute-sanitizer, which reports every call that fails.
BOOST_AUTO_TEST_CASE(more_than_the_device_has_is_refused_by_the_driver,
                     test::on_gpu() * boost::unit_test::label("api_error")) {
  gpu::ledger items;
  items.add(memory_kind::device, "everything", gpu::memory_of(test::first_gpu()).total_bytes + 1_GiB);
  BOOST_CHECK_EXCEPTION(gpu::memory(test::first_gpu(), items), gpu::error, [](const gpu::error& e) {
    return e.code() == 2 && std::string(e.what()).find("are free; lower the device budget") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(device_memory_is_given_back, test::on_gpu()) {
  const auto d = test::first_gpu();
  gpu::ledger items;
  items.add(memory_kind::device, "slab", 256_MiB);
  { const gpu::memory warm_up(d, items); }
  const std::size_t before = gpu::memory_of(d).free_bytes;
  {
    const gpu::memory memory(d, items);
    BOOST_TEST(before - gpu::memory_of(d).free_bytes >= 256_MiB);
  }
  BOOST_TEST(gpu::memory_of(d).free_bytes == before);
}

BOOST_AUTO_TEST_CASE(a_fault_in_a_copy_reaches_the_caller) {
  const auto faults = std::make_shared<test::failing_site>(fault_site::cuda_call, 700, "cudaMemcpyAsync");
  const gpu::stream stream(gpu::device::host(), false, faults);
  char from[4] = {1, 2, 3, 4}, to[4] = {};
  fill(stream, to, 9, 4);
  BOOST_CHECK_EXCEPTION(copy(stream, to, from, 4), gpu::error, [](const gpu::error& e) { return e.code() == 700; });
  BOOST_TEST(to[0] == 9);
  BOOST_TEST(faults->asked().back().what == "cudaMemcpyAsync");
  BOOST_TEST(faults->asked().back().bytes == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
