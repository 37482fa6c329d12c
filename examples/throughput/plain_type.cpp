#include "plain_type.hpp"

#include <vector>

namespace examples {
namespace {

using type_handle = hdf5_handle<H5Tclose>;

type_handle array_of(hid_t stored) {
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Tget_array_ndims(stored)));
  H5Tget_array_dims2(stored, extents.data());
  const type_handle element = plain_type(type_handle(H5Tget_super(stored)).native());
  return type_handle(H5Tarray_create2(element.native(), static_cast<unsigned>(extents.size()), extents.data()));
}

}  // namespace

type_handle plain_type(hid_t stored) {
  const H5T_class_t kind = H5Tget_class(stored);
  if (kind == H5T_ARRAY) return array_of(stored);
  if (kind == H5T_FLOAT && H5Tget_size(stored) == 2) {
    type_handle half(H5Tcopy(stored));
    H5Tset_order(half.native(), H5Tget_order(H5T_NATIVE_FLOAT));
    return half;
  }
  if (kind == H5T_STRING && H5Tis_variable_str(stored) == 0) {
    type_handle text(H5Tcopy(stored));
    H5Tset_strpad(text.native(), H5T_STR_NULLPAD);
    return text;
  }
  return type_handle(H5Tget_native_type(stored, H5T_DIR_ASCEND));
}

}  // namespace examples
