#include "text_reference.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>

namespace penstock::io {
namespace {

constexpr const char* tag = "penstock: reference to a text, as it is stored";

bool is_ours(hid_t type) {
  char* const found = H5Tget_tag(type);
  const bool same = found != nullptr && std::string_view(found) == tag;
  H5free_memory(found);
  return same;
}

/// The bytes stay as they are. libhdf5 has the stored ones where it converts what it read; a text in memory is a
/// pointer, which no reference is as short as.
herr_t keep_bytes(hid_t from, hid_t to, H5T_cdata_t* about, std::size_t, std::size_t, std::size_t, void*, void*,
                  hid_t) {
  if (about->command != H5T_CONV_INIT) return 0;
  about->need_bkg = H5T_BKG_NO;
  const bool fits = H5Tis_variable_str(from) > 0 && is_ours(to) && H5Tget_size(from) == H5Tget_size(to) &&
                    H5Tget_size(from) > sizeof(char*);
  return fits ? 0 : -1;
}

type_id tagged(std::size_t bytes) {
  type_id type(checked(H5Tcreate(H5T_OPAQUE, bytes), "a type for references cannot be made"));
  checked(H5Tset_tag(type.native(), tag), "a type for references cannot be made");
  return type;
}

/// libhdf5's table of conversions is process-wide, and so is our entry in it.
bool is_registered() {
  static const bool done = [] {
    const type_id text(checked(H5Tcopy(H5T_C_S1), "a text type cannot be made")), to = tagged(16);
    checked(H5Tset_size(text.native(), H5T_VARIABLE), "a text type cannot be made");
    checked(H5Tregister(H5T_PERS_SOFT, "penstock: text references", text.native(), to.native(), keep_bytes),
            "a conversion cannot be registered with libhdf5");
    return true;
  }();
  return done;
}

}  // namespace

address_format address_format_of(hid_t file) {
  const library_guard guard;
  const property_id creation(checked(H5Fget_create_plist(file), "its file's properties cannot be read"));
  address_format format;
  hsize_t base = 0;
  checked(H5Pget_sizes(creation.native(), &format.offset_bytes, &format.length_bytes),
          "its file's sizes of addresses cannot be read");
  checked(H5Pget_userblock(creation.native(), &base), "its user block cannot be read");
  format.base = base;
  if (format.offset_bytes > 8 || format.length_bytes > 8 || format.offset_bytes == 0 || format.length_bytes == 0)
    throw failure(fmt::format("addresses of its file have {} bytes, and lengths {}; up to 8 are read",
                              format.offset_bytes, format.length_bytes));
  return format;
}

std::uint64_t decode_number(std::span<const std::byte> stored) noexcept {
  std::uint64_t number = 0;
  for (std::size_t n = stored.size(); n-- > 0;) number = number << 8 | std::to_integer<std::uint64_t>(stored[n]);
  return number;
}

text_reference decode_reference(std::span<const std::byte> stored, const address_format& format) noexcept {
  return {.bytes = static_cast<std::uint32_t>(decode_number(stored.first(4))),
          .address = decode_number(stored.subspan(4, format.offset_bytes)),
          .index = static_cast<std::uint32_t>(decode_number(stored.subspan(4 + format.offset_bytes, 4)))};
}

type_id reference_memory(std::size_t bytes) {
  is_registered();
  return tagged(bytes);
}

}  // namespace penstock::io
