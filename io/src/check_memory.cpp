#include "check_memory.hpp"

#include "ask_for_memory.hpp"

namespace penstock::io {

std::unique_ptr<std::byte[]> check_memory::take(std::size_t half_bytes) const {
  ask_for_memory(faults_, memory_items::check, 2 * half_bytes);
  return std::make_unique_for_overwrite<std::byte[]>(2 * half_bytes);
}

void check_memory::reserve(std::size_t half_bytes) {
  kept_.reset();
  half_bytes_ = 0;
  if (half_bytes == 0) return;
  workspace();
  kept_ = take(half_bytes);
  half_bytes_ = half_bytes;
}

check_memory::halves check_memory::borrow(std::size_t half_bytes) {
  halves lent;
  if (half_bytes > half_bytes_) lent.taken = take(half_bytes);
  auto* const first = lent.taken ? lent.taken.get() : kept_.get();
  lent.stored = {first, half_bytes};
  lent.other = {first + half_bytes, half_bytes};
  return lent;
}

decode_workspace& check_memory::workspace() {
  if (!workspace_) workspace_ = std::make_unique<decode_workspace>(workspace_sizes{});
  return *workspace_;
}

std::unique_ptr<decode_workspace> check_memory::take_workspace(std::size_t extra_bytes) const {
  ask_for_memory(faults_, memory_items::check, extra_bytes);
  return std::make_unique<decode_workspace>(workspace_sizes{.extra_bytes = extra_bytes});
}

}  // namespace penstock::io
