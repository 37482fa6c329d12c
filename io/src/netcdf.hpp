#pragma once

#include "identifier.hpp"

#include <penstock/type.hpp>

#include <array>
#include <cstddef>
#include <optional>

namespace penstock::io {

/// How a netCDF dataset is packed (CF conventions, "Packed Data"): value * scale + offset, but for fill values.
struct packing {
  std::optional<std::array<std::byte, 8>> fill{};  ///< the first bytes hold one value, in native order
  double scale = 1;
  double offset = 0;

  bool empty() const noexcept { return !fill && scale == 1 && offset == 0; }
};

/// From the attributes _FillValue (as a value of type `element`; none where that holds no such value), scale_factor and
/// add_offset. Throws failure where one of them is no single number. Needs no guard of the caller's.
packing read_packing(hid_t dataset, type element);

}  // namespace penstock::io
