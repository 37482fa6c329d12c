#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

namespace penstock::gpu::host {

/// The memory node (NUMA) that a PCI device, "0000:3b:00.0" in any case, is attached to. Nothing where the machine has
/// one node only, or does not say. The files are those of Linux: Documentation/ABI/testing/sysfs-bus-pci and
/// .../stable/sysfs-devices-node; `sys` is what is /sys.
std::optional<int> node_of_pci_device(std::string_view address, const std::filesystem::path& sys = "/sys");

/// While it lives, pages that the kernel finds for this thread lie on the node, as far as there is room for them; then
/// all is as before. Does nothing without a node, and where the system does not allow it: only speed depends on it.
class preferred_node {
 public:
  explicit preferred_node(std::optional<int> node) noexcept;
  ~preferred_node();
  preferred_node(const preferred_node&) = delete;
  preferred_node& operator=(const preferred_node&) = delete;

 private:
  static constexpr unsigned long most_nodes = 1024;  // of Linux
  using node_set = std::array<unsigned long, most_nodes / (8 * sizeof(unsigned long))>;

  bool changed_ = false;
  int mode_before_ = 0;
  node_set nodes_before_{};
};

}  // namespace penstock::gpu::host
