#include "value_type.hpp"

#include <fmt/format.h>

#include <bit>

namespace penstock::io {
namespace {

std::string order_text(hid_t t) {
  if (H5Tget_size(t) < 2) return {};
  switch (H5Tget_order(t)) {
    case H5T_ORDER_LE: return std::endian::native == std::endian::little ? "" : ", little-endian";
    case H5T_ORDER_BE: return std::endian::native == std::endian::big ? "" : ", big-endian";
    case H5T_ORDER_VAX: return ", VAX order";
    default: return {};
  }
}

std::string integer_text(hid_t t) {
  const auto bits = H5Tget_precision(t), all = H5Tget_size(t) * 8;
  const auto name = fmt::format("{}int{}", H5Tget_sign(t) == H5T_SGN_2 ? "" : "u", all);
  return (bits == all ? name : fmt::format("{} ({} bits)", name, bits)) + order_text(t);
}

std::string float_text(hid_t t) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  H5Tget_fields(t, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
  const auto bits = H5Tget_size(t) * 8;
  const bool standard = (bits == 16 && exponent_bits == 5 && mantissa_bits == 10) ||
                        (bits == 32 && exponent_bits == 8) || (bits == 64 && exponent_bits == 11);
  if (bits == 16 && exponent_bits == 8 && mantissa_bits == 7) return "bfloat16" + order_text(t);
  return fmt::format("float{}", bits) + (standard ? "" : fmt::format(" ({}+{} bits)", exponent_bits, mantissa_bits)) +
         order_text(t);
}

std::string array_text(hid_t t, int depth) {
  const type_id base(H5Tget_super(t));
  const int rank = H5Tget_array_ndims(t);
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank > 0 ? rank : 0));
  if (rank > 0) H5Tget_array_dims2(t, extents.data());
  return fmt::format("array [{}] of {}", fmt::join(extents, "x"), describe_text(base.native(), depth + 1));
}

std::string compound_text(hid_t t, int depth) {
  std::string members;
  const int count = H5Tget_nmembers(t);
  for (int m = 0; m < count; ++m) {
    if (m == 16) {
      members += fmt::format(", and {} more", count - m);
      break;
    }
    const auto at = static_cast<unsigned>(m);
    const type_id member(H5Tget_member_type(t, at));
    char* name = H5Tget_member_name(t, at);
    members += fmt::format("{}{}: {}", m ? ", " : "", name ? name : "?", describe_text(member.native(), depth + 1));
    H5free_memory(name);
  }
  return "compound {" + members + "}";
}

}  // namespace

std::string describe_text(hid_t t, int depth) {
  if (depth > 8) return "...";  // nesting is the file's to choose
  switch (H5Tget_class(t)) {
    case H5T_INTEGER: return integer_text(t);
    case H5T_FLOAT: return float_text(t);
    case H5T_BITFIELD: return fmt::format("bitfield of {} bits", H5Tget_size(t) * 8) + order_text(t);
    case H5T_OPAQUE: return fmt::format("opaque of {} bytes", H5Tget_size(t));
    case H5T_STRING:
      return H5Tis_variable_str(t) > 0 ? std::string("string of variable length")
                                       : fmt::format("string of {} bytes", H5Tget_size(t));
    case H5T_ENUM: {
      const type_id base(H5Tget_super(t));
      return "enum over " + describe_text(base.native(), depth + 1);
    }
    case H5T_ARRAY: return array_text(t, depth);
    case H5T_COMPOUND: return compound_text(t, depth);
    case H5T_VLEN: {
      const type_id base(H5Tget_super(t));
      return "variable length of " + describe_text(base.native(), depth + 1);
    }
    case H5T_REFERENCE: return "reference";
    case H5T_TIME: return "time";
    default: return "unknown datatype";
  }
}

}  // namespace penstock::io
