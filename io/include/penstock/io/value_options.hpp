#pragma once

#include <penstock/type.hpp>

#include <limits>
#include <optional>

namespace penstock::io {

/// What reading makes of stored values, on the thread that reads, while they are in its cache. By default nothing:
/// values are given as they are stored. A GPU swaps and casts faster itself, and its link then carries the stored
/// bytes.
struct value_options {
  /// In this machine's byte order.
  bool native_order = false;
  /// Numbers as float32 or float64, rounded to nearest, in native order. Not for texts and opaque bytes.
  std::optional<type> as{};
  /// netCDF's packing, from the attributes of each dataset: values equal to `_FillValue` become `masked`, all others
  /// value * `scale_factor` + `add_offset`, computed in float64. Attributes that are not there change nothing; other
  /// conventions (missing_value, valid_range, default fill values) are not applied. Without `as`, stored types of up to
  /// 16 bits and float32 give float32, wider ones float64.
  bool netcdf = false;
  double masked = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace penstock::io
