#include "value_type.hpp"

#include <fmt/format.h>

namespace penstock::io {
namespace {

std::string member_names(hid_t t) {
  std::string names;
  const int count = H5Tget_nmembers(t);
  for (int m = 0; m < count; ++m) {
    char* name = H5Tget_member_name(t, static_cast<unsigned>(m));
    names += fmt::format("{}{}", m ? ", " : "", name ? name : "?");
    H5free_memory(name);
  }
  return names;
}

/// Libhdf5 reads one member as a compound of it alone.
type_id compound_of(const std::string& name, hid_t member) {
  type_id alone(checked(H5Tcreate(H5T_COMPOUND, H5Tget_size(member)), "a compound of one member cannot be made"));
  checked(H5Tinsert(alone.native(), name.c_str(), 0, member), "a compound of one member cannot be made");
  return alone;
}

/// The same member of each compound of an array: libhdf5 gathers them.
value_type describe_in_array(hid_t array, const std::string& name) {
  const type_id base(checked(H5Tget_super(array), "its base type cannot be read"));
  auto inner = describe_member(base.native(), name);
  value_type value;
  value.text = fmt::format("array of {}", inner.text);
  value.stored_bytes = H5Tget_size(array);
  make_array_of(value, std::move(inner), array);
  if (value.element && value.conversion.empty())
    value.conversion = "members of compounds in an array are gathered by libhdf5";
  return value;
}

}  // namespace

value_type describe_member(hid_t t, const std::string& name) {
  const library_guard guard;
  if (H5Tget_class(t) == H5T_ARRAY) return describe_in_array(t, name);
  if (H5Tget_class(t) != H5T_COMPOUND)
    throw failure(fmt::format("it is {}, no compound with a member {}", describe_text(t), name));
  std::string first = name, rest;
  int index = H5Tget_member_index(t, first.c_str());
  if (const auto dot = name.find('.'); index < 0 && dot != std::string::npos) {
    first = name.substr(0, dot);
    rest = name.substr(dot + 1);
    index = H5Tget_member_index(t, first.c_str());
  }
  if (index < 0) throw failure(fmt::format("it has no member {}; there are {}", name, member_names(t)));
  const auto at = static_cast<unsigned>(index);
  const type_id member(checked(H5Tget_member_type(t, at), "its member's type cannot be read"));
  auto value = rest.empty() ? describe_type(member.native()) : describe_member(member.native(), rest);
  value.offset += H5Tget_member_offset(t, at);
  value.stored_bytes = H5Tget_size(t);
  if (value.element) value.memory = compound_of(first, value.memory.native());
  return value;
}

}  // namespace penstock::io
