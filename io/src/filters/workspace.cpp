#include "contexts.hpp"

#include <algorithm>

namespace penstock::io {

decode_workspace::decode_workspace(std::size_t spares, std::size_t spare_bytes)
    : spares_(std::min<std::size_t>(spares, 2)),
      spare_bytes_(spares ? spare_bytes : 0),
      contexts_(std::make_unique<contexts>()) {
  for (std::size_t n = 0; n < spares_; ++n) buffers_[n] = std::make_unique_for_overwrite<std::byte[]>(spare_bytes_);
}
decode_workspace::~decode_workspace() = default;
decode_workspace::decode_workspace(decode_workspace&&) noexcept = default;
decode_workspace& decode_workspace::operator=(decode_workspace&&) noexcept = default;

std::size_t decode_workspace::bytes() const noexcept { return spares_ * spare_bytes_; }

}  // namespace penstock::io
