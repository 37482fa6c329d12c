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

/// Bytes by which the members before `offset` are longer in the file than in memory; wraps where they are shorter.
std::size_t grown_before(hid_t t, std::size_t offset, const text_storage& texts, int depth) {
  std::size_t grown = 0;
  const int count = H5Tget_nmembers(t);
  for (int m = 0; m < count; ++m) {
    const auto at = static_cast<unsigned>(m);
    if (H5Tget_member_offset(t, at) >= offset) continue;
    const type_id member(checked(H5Tget_member_type(t, at), "its member's type cannot be read"));
    grown += stored_size(member.native(), texts, depth + 1) - H5Tget_size(member.native());
  }
  return grown;
}

std::size_t stored_offset(hid_t t, unsigned member, const text_storage& texts) {
  const std::size_t here = H5Tget_member_offset(t, member);
  return here + grown_before(t, here, texts, 0);
}

/// Libhdf5 reads one member as a compound of it alone.
type_id compound_of(const std::string& name, hid_t member) {
  type_id alone(checked(H5Tcreate(H5T_COMPOUND, H5Tget_size(member)), "a compound of one member cannot be made"));
  checked(H5Tinsert(alone.native(), name.c_str(), 0, member), "a compound of one member cannot be made");
  return alone;
}

/// The same member of each compound of an array: libhdf5 gathers them.
value_type describe_in_array(hid_t array, const std::string& name, const text_storage& texts) {
  const type_id base(checked(H5Tget_super(array), "its base type cannot be read"));
  auto inner = describe_member(base.native(), name, texts);
  value_type value;
  value.text = fmt::format("array of {}", inner.text);
  value.stored_bytes = stored_size(array, texts);
  make_array_of(value, std::move(inner), array);
  if (value.element && value.conversion.empty())
    value.conversion = "members of compounds in an array are gathered by libhdf5";
  return value;
}

}  // namespace

std::size_t stored_size(hid_t t, const text_storage& texts, int depth) {
  const std::size_t here = H5Tget_size(t);
  if (texts.reference_bytes == 0 || depth > 32) return here;  // nesting is the file's to choose
  switch (H5Tget_class(t)) {
    case H5T_STRING: return H5Tis_variable_str(t) > 0 ? texts.reference_bytes : here;
    case H5T_VLEN: return texts.reference_bytes;
    case H5T_ARRAY: {
      const type_id base(checked(H5Tget_super(t), "its base type cannot be read"));
      const std::size_t each = H5Tget_size(base.native());
      return each == 0 ? here : here / each * stored_size(base.native(), texts, depth + 1);
    }
    case H5T_COMPOUND: return here + grown_before(t, here, texts, depth);
    default: return here;
  }
}

value_type describe_member(hid_t t, const std::string& name, const text_storage& texts) {
  const library_guard guard;
  if (H5Tget_class(t) == H5T_ARRAY) return describe_in_array(t, name, texts);
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
  auto value = rest.empty() ? describe_type(member.native(), texts) : describe_member(member.native(), rest, texts);
  value.offset += stored_offset(t, at, texts);
  value.stored_bytes = stored_size(t, texts);
  if (value.element) value.memory = compound_of(first, value.memory.native());
  return value;
}

}  // namespace penstock::io
