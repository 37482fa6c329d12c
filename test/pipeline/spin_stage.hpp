#pragma once

#include <penstock/gpu/memory.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace penstock::test {

/// What a kernel that spins needs: a gate that the host opens, the mark that the kernel sets when it was opened; and a
/// word on the host for what is copied back.
class spin_stage {
 public:
  explicit spin_stage(gpu::device d) : memory_(d, items()) {
    const gpu::stream stream(d);
    for (const char* name : {"gate", "seen"}) *word(gpu::memory_kind::pinned, name) = 0;
    fill(stream, mark(), 0, 4);
    stream.synchronize();
  }
  /// Whatever a failed check leaves behind, kernels end before the memory goes.
  ~spin_stage() {
    open();
    cudaDeviceSynchronize();
  }
  spin_stage(const spin_stage&) = delete;
  spin_stage& operator=(const spin_stage&) = delete;

  std::uint32_t* gate() const { return word(gpu::memory_kind::pinned, "gate"); }
  std::uint32_t* seen() const { return word(gpu::memory_kind::pinned, "seen"); }
  std::uint32_t* mark() const { return word(gpu::memory_kind::device, "mark"); }
  void open() const { std::atomic_ref(*gate()).store(1, std::memory_order_seq_cst); }

  /// Four bytes of device memory as they are now, whatever streams other than `probe` are about.
  template <class T>
  T peek(gpu::stream_ref probe, const T* at) const {
    static_assert(sizeof(T) == 4);
    copy(probe, seen(), at, 4);
    probe.synchronize();
    return std::bit_cast<T>(*seen());
  }
  /// Whether they become `value` within the patience of a kernel that spins.
  template <class T>
  bool comes_to(gpu::stream_ref probe, const T* at, T value) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (peek(probe, at) != value)
      if (std::chrono::steady_clock::now() > until) return false;
    return true;
  }

 private:
  static gpu::ledger items() {
    gpu::ledger ledger;
    ledger.add(gpu::memory_kind::pinned, "gate", 4);
    ledger.add(gpu::memory_kind::pinned, "seen", 4);
    ledger.add(gpu::memory_kind::device, "mark", 4);
    return ledger;
  }
  std::uint32_t* word(gpu::memory_kind kind, const char* name) const {
    return reinterpret_cast<std::uint32_t*>(memory_.at(kind, name).data());
  }
  gpu::memory memory_;
};

}  // namespace penstock::test
