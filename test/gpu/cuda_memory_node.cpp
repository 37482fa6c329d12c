// Where pinned memory lies, as the kernel tells it.

#include <host/memory_node.hpp>

#include <penstock/gpu/memory.hpp>

#include <boost/test/unit_test.hpp>

#include <cuda_runtime_api.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "../support/gpu.hpp"

using namespace penstock;

namespace {

/// The node of a page; -1 where the kernel does not tell.
int node_of(const void* address) {
  int node = -1;
  syscall(SYS_get_mempolicy, &node, nullptr, 0UL, address, MPOL_F_NODE | MPOL_F_ADDR);
  return node;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_memory_nodes)

// On a machine with one node, that is where all lies.
BOOST_AUTO_TEST_CASE(pinned_memory_lies_on_the_node_of_its_device, test::on_gpu()) {
  const gpu::device device = test::first_gpu();
  std::array<char, 32> address{};
  BOOST_REQUIRE(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device.ordinal()) ==
                cudaSuccess);
  gpu::ledger items;
  items.add(gpu::memory_kind::pinned, "slots", 8_MiB);
  const gpu::memory memory(device, items);
  const auto slots = memory.at(gpu::memory_kind::pinned, "slots");
  BOOST_TEST_MESSAGE("cuda device " << address.data() << ", slots on node " << node_of(slots.data()));
  const int expected = gpu::host::node_of_pci_device(address.data()).value_or(node_of(slots.data()));
  for (std::size_t at = 0; at < slots.size(); at += 1_MiB) BOOST_TEST(node_of(slots.data() + at) == expected);
}

BOOST_AUTO_TEST_SUITE_END()
