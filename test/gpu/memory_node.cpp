#include <host/memory_node.hpp>

#include <boost/test/unit_test.hpp>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <optional>
#include <string>

#include "fake_folder.hpp"

using penstock::gpu::host::node_of_pci_device;
using penstock::gpu::host::preferred_node;

namespace {

struct fake_sys : penstock::test::fake_folder {
  fake_sys() : fake_folder("sys") {}
};

struct policy {
  int mode = -1;
  std::array<unsigned long, 16> nodes{};
  friend bool operator==(const policy&, const policy&) = default;
};

/// The policy of this thread, as the kernel tells it; nothing where it does not.
std::optional<policy> policy_now() {
  policy now;
  if (syscall(SYS_get_mempolicy, &now.mode, now.nodes.data(), 1025UL, nullptr, 0) != 0) return std::nullopt;
  return now;
}

/// Whether this thread may choose where its memory lies; containers often forbid it.
boost::test_tools::assertion_result may_choose(boost::unit_test::test_unit_id id) {
  const preferred_node first(0);
  boost::test_tools::assertion_result may(policy_now().value_or(policy{}).mode == MPOL_PREFERRED);
  if (may) return may;
  may.message() << "the system does not let it choose where its memory lies";
  std::cout << "skipped: " << boost::unit_test::framework::get(id, boost::unit_test::TUT_ANY).full_name() << ": "
            << may.message().str() << std::endl;
  return may;
}

/// The node on which the kernel put a page.
int node_of(const void* address) {
  int node = -1;
  syscall(SYS_get_mempolicy, &node, nullptr, 0UL, address, MPOL_F_NODE | MPOL_F_ADDR);
  return node;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_nodes)

BOOST_FIXTURE_TEST_CASE(a_device_is_on_the_node_that_the_system_says, fake_sys) {
  write("devices/system/node/online", "0-1\n");
  write("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  write("bus/pci/devices/0000:af:00.0/numa_node", "0\n");
  BOOST_TEST((node_of_pci_device("0000:3B:00.0", path()) == std::optional(1)));
  BOOST_TEST((node_of_pci_device("0000:AF:00.0", path()) == std::optional(0)));
}

BOOST_FIXTURE_TEST_CASE(a_machine_with_one_node_or_that_does_not_say_has_none, fake_sys) {
  write("bus/pci/devices/0000:3b:00.0/numa_node", "0\n");
  BOOST_TEST(!node_of_pci_device("0000:3b:00.0", path()).has_value());
  write("devices/system/node/online", "0\n");
  BOOST_TEST(!node_of_pci_device("0000:3b:00.0", path()).has_value());
  write("devices/system/node/online", "0,2\n");
  write("bus/pci/devices/0000:3b:00.0/numa_node", "-1\n");
  BOOST_TEST(!node_of_pci_device("0000:3b:00.0", path()).has_value());
  BOOST_TEST(!node_of_pci_device("0000:00:1f.0", path()).has_value());
  BOOST_TEST(!node_of_pci_device("", path()).has_value());
}

BOOST_AUTO_TEST_CASE(a_preference_lasts_as_long_as_its_object, *boost::unit_test::precondition(may_choose)) {
  const auto before = policy_now();
  {
    const preferred_node first(0);
    policy expected{.mode = MPOL_PREFERRED, .nodes = {}};
    expected.nodes[0] = 1;
    BOOST_TEST((policy_now() == expected));
    {
      const preferred_node none(std::nullopt), not_there(1023), beyond(5000), negative(-1);
      BOOST_TEST((policy_now() == expected));
    }
    BOOST_TEST((policy_now() == expected));
  }
  BOOST_TEST((policy_now() == before));
}

BOOST_AUTO_TEST_CASE(pages_lie_on_the_node_that_was_preferred, *boost::unit_test::precondition(may_choose)) {
  const std::size_t bytes = 1 << 20;
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_REQUIRE(pages != MAP_FAILED);
  {
    const preferred_node first(0);
    *static_cast<char*>(pages) = 1;
  }
  BOOST_TEST(node_of(pages) == 0);
  munmap(pages, bytes);
}

BOOST_AUTO_TEST_SUITE_END()
