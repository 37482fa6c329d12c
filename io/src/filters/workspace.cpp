#include "contexts.hpp"

#include <algorithm>

namespace penstock::io {

decode_workspace::decode_workspace(const workspace_sizes& sizes)
    : sizes_(sizes), contexts_(std::make_unique<contexts>()) {
  sizes_.spares = std::min(sizes_.spares, spares_.size());
  for (std::size_t n = 0; n < sizes_.spares; ++n)
    spares_[n] = std::make_unique_for_overwrite<std::byte[]>(sizes_.spare_bytes);
  extra_ = std::make_unique_for_overwrite<std::byte[]>(sizes_.extra_bytes);
}
decode_workspace::~decode_workspace() = default;
decode_workspace::decode_workspace(decode_workspace&&) noexcept = default;
decode_workspace& decode_workspace::operator=(decode_workspace&&) noexcept = default;

}  // namespace penstock::io
