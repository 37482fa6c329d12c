#include "native_type.hpp"

namespace penstock::io {
namespace {

hid_t predefined(type element) {
  switch (element) {
    case type::int8: return H5T_NATIVE_INT8;
    case type::uint8: return H5T_NATIVE_UINT8;
    case type::int16: return H5T_NATIVE_INT16;
    case type::uint16: return H5T_NATIVE_UINT16;
    case type::int32: return H5T_NATIVE_INT32;
    case type::uint32: return H5T_NATIVE_UINT32;
    case type::int64: return H5T_NATIVE_INT64;
    case type::uint64: return H5T_NATIVE_UINT64;
    case type::float64: return H5T_NATIVE_DOUBLE;
    default: return H5T_NATIVE_FLOAT;
  }
}

/// A float of two bytes: the sign on top, then the exponent, then the mantissa with its leading 1 implied.
void narrow(hid_t id, std::size_t exponent_bits, std::size_t bias) {
  const std::size_t mantissa_bits = 15 - exponent_bits;
  checked(H5Tset_fields(id, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), "a 16-bit float cannot be described");
  checked(H5Tset_size(id, 2), "a 16-bit float cannot be described");
  checked(H5Tset_ebias(id, bias), "a 16-bit float cannot be described");
}

}  // namespace

type_id native_type(type element) {
  const library_guard guard;
  type_id id(checked(H5Tcopy(predefined(element)), "a type cannot be copied"));
  if (element == type::float16) narrow(id.native(), 5, 15);
  if (element == type::bfloat16) narrow(id.native(), 8, 127);
  return id;
}

}  // namespace penstock::io
