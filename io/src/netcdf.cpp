#include "netcdf.hpp"

#include "native_type.hpp"

#include <fmt/format.h>

namespace penstock::io {
namespace {

/// Reads the attribute `name` into `out`; false where there is none.
bool read_number(hid_t dataset, const char* name, hid_t memory, void* out) {
  if (checked(H5Aexists(dataset, name), "its attributes cannot be read") == 0) return false;
  const attribute_id attribute(checked(H5Aopen(dataset, name, H5P_DEFAULT), "an attribute cannot be opened"));
  const type_id stored(checked(H5Aget_type(attribute.native()), "an attribute's type cannot be read"));
  const space_id space(checked(H5Aget_space(attribute.native()), "an attribute's shape cannot be read"));
  const auto kind = H5Tget_class(stored.native());
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || H5Sget_simple_extent_npoints(space.native()) != 1)
    throw failure(fmt::format("its attribute {} is no single number, as netCDF's conventions need", name));
  checked(H5Aread(attribute.native(), memory, out), "an attribute cannot be read");
  return true;
}

}  // namespace

packing read_packing(hid_t dataset, type element) {
  const library_guard guard;
  packing p;
  std::array<std::byte, 8> fill{};
  if (read_number(dataset, "_FillValue", native_type(element).native(), fill.data())) p.fill = fill;
  read_number(dataset, "scale_factor", H5T_NATIVE_DOUBLE, &p.scale);
  read_number(dataset, "add_offset", H5T_NATIVE_DOUBLE, &p.offset);
  return p;
}

}  // namespace penstock::io
