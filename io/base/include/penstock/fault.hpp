#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace penstock {

/// Places where the world beneath Penstock can fail. A test that holds the seam is asked before each use.
enum class fault_site {
  open_file,
  read_file,
  write_file,
  sync_file,
  rename_file,
  decode,  ///< one filter of one chunk, undone by Penstock itself
  allocate_host,
  allocate_pinned,
  allocate_device,
  cuda_call
};

/// What happens at one use of a site; the default is nothing.
struct fault {
  /// errno for files and host memory, cudaError_t for the device; of a decoder, anything but 0: it reports damage.
  int error = 0;
  std::size_t at_most = static_cast<std::size_t>(-1);  ///< a read, write or decoder moves no more bytes than this
  std::chrono::microseconds delay{0};                  ///< the use takes this much longer
};

/// The seam through which tests make things fail. Programs never set one: options hold a null pointer, which costs a
/// comparison. Implementations must be thread-safe.
class fault_injector {
 public:
  virtual ~fault_injector() = default;
  /// Asked before a use. `what`: the file's path, or the name of the allocation, call or
  /// filter. `offset`: a file offset, or 0. `bytes`: of a decoder, those that it is to put out.
  virtual fault before(fault_site site, std::string_view what, std::uint64_t offset, std::size_t bytes) = 0;
  /// Shown the bytes of a read that succeeded; may change them.
  virtual void after_read(std::string_view path, std::uint64_t offset, std::span<std::byte> bytes) {
    (void)path, (void)offset, (void)bytes;
  }
  /// Shown what a decoder put out into memory of its own (a checksum's puts out none); may change it.
  virtual void after_decode(std::string_view filter, std::span<std::byte> bytes) { (void)filter, (void)bytes; }
};

using fault_seam = std::shared_ptr<fault_injector>;

}  // namespace penstock
