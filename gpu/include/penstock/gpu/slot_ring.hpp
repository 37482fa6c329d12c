#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::gpu {

/// Slots of equal size in one piece of memory, used in turn: use number n is slot n modulo slots(). A slot is a credit:
/// who holds none does not start. Slots are given back in the order in which they were taken. Holds no lock: its owner
/// does.
class slot_ring {
 public:
  slot_ring() noexcept = default;
  slot_ring(std::span<std::byte> memory, std::size_t slot_bytes, std::size_t slots) noexcept
      : base_(memory.data()), slot_bytes_(slot_bytes), slots_(slots) {}

  std::size_t slots() const noexcept { return slots_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::byte* base() const noexcept { return base_; }
  /// The memory of use `number`; null where there are no slots.
  std::byte* at(std::uint64_t number) const noexcept {
    return slots_ ? base_ + number % slots_ * slot_bytes_ : nullptr;
  }

  /// Uses so far, and how many of them were given back.
  std::uint64_t taken() const noexcept { return taken_; }
  std::uint64_t given_back() const noexcept { return given_back_; }
  std::size_t in_use() const noexcept { return static_cast<std::size_t>(taken_ - given_back_); }
  bool has_free() const noexcept { return in_use() < slots_; }

  /// Takes the next slot (precondition: has_free()); returns its use number.
  std::uint64_t take() noexcept { return taken_++; }
  /// Gives back the oldest uses until `count` were given back in all.
  void give_back_to(std::uint64_t count) noexcept { given_back_ = count > given_back_ ? count : given_back_; }
  /// As new: nothing taken.
  void reset() noexcept { taken_ = given_back_ = 0; }

 private:
  std::byte* base_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::size_t slots_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t given_back_ = 0;
};

}  // namespace penstock::gpu
