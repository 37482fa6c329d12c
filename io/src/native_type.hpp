#pragma once

#include "identifier.hpp"

#include <penstock/type.hpp>

#include <cstddef>

namespace penstock::io {

/// Where a float's fields lie, in bits.
struct float_fields {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0, bias = 0;
  bool operator==(const float_fields&) const = default;
};

struct known_float {
  type element;
  float_fields fields;
};
/// IEEE 754 binary16, binary32, binary64, and bfloat16, told apart by their fields: half and bfloat16 have the same
/// size.
inline constexpr known_float known_floats[] = {{type::float16, {15, 10, 5, 0, 10, 15}},
                                               {type::bfloat16, {15, 7, 8, 0, 7, 127}},
                                               {type::float32, {31, 23, 8, 0, 23, 127}},
                                               {type::float64, {63, 52, 11, 0, 52, 1023}}};

/// The HDF5 type of Penstock's element type in this machine's byte order. float16 and bfloat16 are floats of these
/// fields, as h5py writes them. Needs no guard of the caller's.
type_id native_type(type element);

}  // namespace penstock::io
