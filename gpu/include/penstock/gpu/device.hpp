#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::gpu {

/// Where batches are consumed: the host, or a CUDA device by its ordinal. A value; cheap to copy.
class device {
 public:
  /// The host; always there.
  static device host() noexcept { return device(-1); }
  /// The CUDA device `ordinal`; throws gpu::error that says what there is instead.
  static device cuda(int ordinal);
  /// The CUDA device with the most free memory, or the host where there is none. Never throws.
  static device best() noexcept;
  /// "host", "cpu", "cuda" (the best CUDA device), "cuda:N", "auto" (best()). Throws std::invalid_argument for another
  /// word, gpu::error for a device that is not there.
  static device parse(std::string_view text);
  /// Every device of this machine, the host last.
  static std::vector<device> all();

  bool is_host() const noexcept { return ordinal_ < 0; }
  bool is_cuda() const noexcept { return ordinal_ >= 0; }
  /// CUDA's ordinal; -1 for the host.
  int ordinal() const noexcept { return ordinal_; }
  /// "host" or "cuda:0".
  std::string name() const;
  /// For people: "cuda:0 (NVIDIA H100 80GB HBM3)", "host (16 processors; no CUDA device: no driver)".
  std::string description() const;

  friend bool operator==(device, device) noexcept = default;

 private:
  explicit constexpr device(int ordinal) noexcept : ordinal_(ordinal) {}
  int ordinal_;
};

struct memory_size {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// What the driver says of the device's memory (cudaMemGetInfo); of the host's: available and total.
memory_size memory_of(device d);

/// Processors that this process may use: the smaller of its affinity and its cgroup's quota, at least 1.
std::size_t processors() noexcept;

}  // namespace penstock::gpu
