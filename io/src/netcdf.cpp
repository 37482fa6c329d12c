#include "netcdf.hpp"

#include "native_type.hpp"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

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

/// `_FillValue` as a value of type `element`. Nothing where no integer of that type equals it: NaN, or a number that
/// is too large. Floats are rounded.
std::optional<std::array<std::byte, 8>> read_fill(hid_t dataset, type element) {
  std::array<std::byte, 8> fill{};
  if (!read_number(dataset, "_FillValue", native_type(element).native(), fill.data())) return std::nullopt;
  if (is_floating(element)) return fill;
  long double exact = 0;  // holds every integer of 64 bits
  read_number(dataset, "_FillValue", H5T_NATIVE_LDOUBLE, &exact);
  const bool same = visit_type(element, [&](auto value) {
    std::memcpy(&value, fill.data(), sizeof value);
    if constexpr (std::is_integral_v<decltype(value)>) return static_cast<long double>(value) == exact;
    return true;
  });
  return same ? std::optional(fill) : std::nullopt;
}

}  // namespace

packing read_packing(hid_t dataset, type element) {
  const library_guard guard;
  packing p;
  p.fill = read_fill(dataset, element);
  read_number(dataset, "scale_factor", H5T_NATIVE_DOUBLE, &p.scale);
  read_number(dataset, "add_offset", H5T_NATIVE_DOUBLE, &p.offset);
  return p;
}

}  // namespace penstock::io
