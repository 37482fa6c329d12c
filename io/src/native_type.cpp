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

/// Makes a float of two bytes out of a wider one.
void narrow(hid_t id, const float_fields& f) {
  checked(H5Tset_fields(id, f.sign, f.exponent, f.exponent_bits, f.mantissa, f.mantissa_bits),
          "a 16-bit float cannot be described");
  checked(H5Tset_size(id, 2), "a 16-bit float cannot be described");
  checked(H5Tset_ebias(id, f.bias), "a 16-bit float cannot be described");
}

}  // namespace

type_id native_type(type element) {
  const library_guard guard;
  type_id id(checked(H5Tcopy(predefined(element)), "a type cannot be copied"));
  for (const auto& known : known_floats)
    if (known.element == element && size_of(element) == 2) narrow(id.native(), known.fields);
  return id;
}

}  // namespace penstock::io
