#include "memory_node.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <string>

namespace penstock::gpu::host {

std::optional<int> node_of_pci_device(std::string_view address, const std::filesystem::path& sys) {
  std::string online;  // "0", "0-1", "0,2"
  std::ifstream(sys / "devices/system/node/online") >> online;
  if (online.find_first_of("-,") == std::string::npos) return std::nullopt;
  std::string name;
  for (const char c : address) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  int node = -1;
  if (!(std::ifstream(sys / "bus/pci/devices" / name / "numa_node") >> node) || node < 0) return std::nullopt;
  return node;
}

// The calls are libnuma's, which is no dependency for two of them. The kernel looks at one node less than it is told.
preferred_node::preferred_node(std::optional<int> node) noexcept {
  if (!node || *node < 0 || static_cast<unsigned long>(*node) >= most_nodes) return;
  if (syscall(SYS_get_mempolicy, &mode_before_, nodes_before_.data(), most_nodes + 1, nullptr, 0) != 0) return;
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  node_set only{};
  only[static_cast<std::size_t>(*node) / bits] = 1UL << (static_cast<std::size_t>(*node) % bits);
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, only.data(), most_nodes + 1) == 0;
}

preferred_node::~preferred_node() {
  if (changed_) syscall(SYS_set_mempolicy, mode_before_, nodes_before_.data(), most_nodes + 1);
}

}  // namespace penstock::gpu::host
