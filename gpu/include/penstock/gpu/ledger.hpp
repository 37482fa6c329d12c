#pragma once

#include <penstock/bytes.hpp>
#include <penstock/gpu/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::gpu {

/// The three kinds of bulk memory that a budget limits. On the host device `device` and `pinned` are plain host memory.
enum class memory_kind : std::uint8_t { device, pinned, host };
inline constexpr std::array memory_kinds{memory_kind::device, memory_kind::pinned, memory_kind::host};
std::string_view name_of(memory_kind kind) noexcept;

/// Limits in bytes.
struct budget {
  std::size_t device_bytes = std::size_t{512} << 20;
  std::size_t pinned_bytes = std::size_t{256} << 20;
  std::size_t host_bytes = std::size_t{512} << 20;

  std::size_t& of(memory_kind kind) noexcept;
  std::size_t of(memory_kind kind) const noexcept;
};

/// The itemised list of what a plan takes from a budget. Pure: no memory is allocated by it. Items keep their order;
/// each has a name of its own within its kind.
class ledger {
 public:
  struct item {
    memory_kind kind;
    std::string name;  ///< "pipeline: ring of image"
    std::size_t bytes;
    std::string detail;  ///< how the bytes come about: "1024 rows of 3.06 KiB"; may be empty
  };

  /// Alignment of every item in its slab, and so the granularity of total().
  static constexpr std::size_t alignment = 512;

  /// Throws std::invalid_argument where the kind has an item of that name.
  void add(memory_kind kind, std::string name, std::size_t bytes, std::string detail = {});
  void add(const ledger& other);

  const std::vector<item>& items() const noexcept { return items_; }
  /// Sum of the kind's items, each rounded up to `alignment`.
  std::size_t total(memory_kind kind) const noexcept;
  bool fits(const budget& limits) const noexcept;

 private:
  std::vector<item> items_;
};

/// A table for people: kind, item, bytes, detail; a total for each kind, beside its limit.
std::string to_text(const ledger& items, const budget& limits);

/// A plan does not fit its budget. what() holds a sentence, the ledger, and the smallest budget that would do.
class budget_error : public error {
 public:
  budget_error(const std::string& sentence, ledger items, budget limits, budget smallest);
  const ledger& items() const noexcept { return items_; }
  const budget& limits() const noexcept { return limits_; }
  const budget& smallest() const noexcept { return smallest_; }

 private:
  ledger items_;
  budget limits_;
  budget smallest_;
};

}  // namespace penstock::gpu
