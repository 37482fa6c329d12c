#pragma once

#include "identifier.hpp"

#include <penstock/type.hpp>

namespace penstock::io {

/// The HDF5 type of Penstock's element type in this machine's byte order. bfloat16 is a custom float of 2 bytes (sign
/// 1, exponent 8, mantissa 7), float16 as h5py writes it. Needs no guard of the caller's.
type_id native_type(type element);

}  // namespace penstock::io
