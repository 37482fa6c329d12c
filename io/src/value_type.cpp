#include "value_type.hpp"

#include "native_type.hpp"
#include "text_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace penstock::io {
namespace {

constexpr H5T_order_t native_order = std::endian::native == std::endian::little ? H5T_ORDER_LE : H5T_ORDER_BE;

type integer_of(std::size_t bytes, bool is_signed) {
  if (bytes <= 1) return is_signed ? type::int8 : type::uint8;
  if (bytes <= 2) return is_signed ? type::int16 : type::uint16;
  if (bytes <= 4) return is_signed ? type::int32 : type::uint32;
  return is_signed ? type::int64 : type::uint64;
}

type_id copy_of(hid_t t) { return type_id(checked(H5Tcopy(t), "its datatype cannot be copied")); }

/// Values whose stored bits are the machine's but for byte order.
void keep_bits(value_type& value, hid_t stored, type element) {
  const auto order = H5Tget_order(stored);
  value.element = element_type{element, order != native_order && size_of(element) > 1, 1, numpy_code(element)};
  value.memory = copy_of(stored);
  value.bytes = value.stored_bytes;
}

void convert(value_type& value, type element, std::string why) {
  value.element = element_type{element, false, 1, numpy_code(element)};
  value.memory = native_type(element);
  value.bytes = size_of(element);
  value.conversion = std::move(why);
}

bool known_order(hid_t t) {
  const auto order = H5Tget_order(t);
  return order == H5T_ORDER_LE || order == H5T_ORDER_BE;
}

void describe_integer(value_type& value, hid_t t) {
  const bool is_signed = H5Tget_sign(t) == H5T_SGN_2;
  if (value.stored_bytes > 8) {
    value.refusal = "integers of more than 8 bytes are not read; store them as int64";
    return;
  }
  const auto element = integer_of(value.stored_bytes, is_signed);
  const auto precision = H5Tget_precision(t);
  const bool full = precision == value.stored_bytes * 8 && H5Tget_offset(t) == 0;
  if (full && size_of(element) == value.stored_bytes && (known_order(t) || value.stored_bytes == 1))
    return keep_bits(value, t, element);
  convert(value, element,
          fmt::format("{}-bit integers in {} bytes are converted by libhdf5", precision, value.stored_bytes));
  if (size_of(element) == 1 || !known_order(t) || H5Tget_order(t) == native_order) return;
  // Between integers of one size and two byte orders libhdf5 only swaps bytes (1.10.8): bits above the precision would
  // stay as they are, and signs would be lost. So the byte order stays.
  checked(H5Tset_order(value.memory.native(), H5Tget_order(t)), "its byte order cannot be kept");
  value.element->swapped = true;
}

void describe_bytes(value_type& value, hid_t t, std::string_view code) {
  value.bytes = H5Tget_size(t);
  value.element = element_type{type::uint8, false, value.bytes, fmt::format("{}{}", code, value.bytes)};
  value.shape = {value.bytes};
  value.memory = copy_of(t);
}

void describe_string(value_type& value, hid_t t, const text_storage& texts) {
  if (H5Tis_variable_str(t) > 0 && texts.as_references) {
    value.memory = reference_memory(texts.reference_bytes);
    value.bytes = texts.reference_bytes;
    value.element = element_type{type::uint8, false, value.bytes, fmt::format("|V{}", value.bytes)};
    value.shape = {value.bytes};
    return;
  }
  if (H5Tis_variable_str(t) > 0) {
    value.labels = true;
    value.element = element_type{type::int32, false, 1, numpy_code(type::int32)};
    value.bytes = sizeof(std::int32_t);
    value.memory = copy_of(t);
    return;
  }
  describe_bytes(value, t, "|S");
  value.text_bytes = value.bytes;
  const auto pad = H5Tget_strpad(t);
  value.text_padding = pad == H5T_STR_SPACEPAD   ? padding::spaces
                       : pad == H5T_STR_NULLTERM ? padding::zeros_after_terminator
                                                 : padding::none;
}

/// x87's 80 bits in 16 bytes: no element type of ours, so given as bytes.
void describe_long_double(value_type& value, hid_t t, const std::string& why) {
  describe_bytes(value, H5T_NATIVE_LDOUBLE, native_order == H5T_ORDER_LE ? "<f" : ">f");
  if (H5Tequal(t, H5T_NATIVE_LDOUBLE) <= 0) value.conversion = why;
}

void describe_float(value_type& value, hid_t t) {
  float_fields f;
  checked(H5Tget_fields(t, &f.sign, &f.exponent, &f.exponent_bits, &f.mantissa, &f.mantissa_bits),
          "its fields cannot be read");
  f.bias = H5Tget_ebias(t);
  const bool full = H5Tget_precision(t) == value.stored_bytes * 8 && H5Tget_offset(t) == 0 && known_order(t);
  if (full && H5Tget_norm(t) == H5T_NORM_IMPLIED)
    for (const auto& known : known_floats)
      if (known.fields == f && size_of(known.element) == value.stored_bytes) return keep_bits(value, t, known.element);

  // The smallest machine type that holds every value: a conversion must not round.
  const auto holds = [&](std::size_t exponent_bits, std::size_t mantissa_bits) {
    return f.exponent_bits <= exponent_bits && f.mantissa_bits <= mantissa_bits;
  };
  const auto why = fmt::format("floats of {} exponent and {} mantissa bits are converted by libhdf5", f.exponent_bits,
                               f.mantissa_bits);
  if (holds(8, 23)) return convert(value, type::float32, why);
  if (holds(11, 52)) return convert(value, type::float64, why);
  if (holds(15, 64) && sizeof(long double) == 16) return describe_long_double(value, t, why);
  value.refusal = "floats wider than 64 bits are not read; store them as float64";
}

void describe_bitfield(value_type& value, hid_t t) {
  const auto element = integer_of(value.stored_bytes, false);
  if (size_of(element) == value.stored_bytes && known_order(t)) return keep_bits(value, t, element);
  describe_bytes(value, t, "|V");
}

/// h5py's booleans: an enum of FALSE = 0 and TRUE = 1.
bool is_bool(hid_t t) {
  if (H5Tget_size(t) != 1 || H5Tget_nmembers(t) != 2) return false;
  signed char value = 0;
  return H5Tenum_valueof(t, "FALSE", &value) >= 0 && value == 0 && H5Tenum_valueof(t, "TRUE", &value) >= 0 &&
         value == 1;
}

void describe_enum(value_type& value, hid_t t) {
  const type_id base(checked(H5Tget_super(t), "its base type cannot be read"));
  describe_integer(value, base.native());
  if (!value.element) return;
  if (value.conversion.empty()) value.memory = copy_of(t);  // else its codes are converted as integers, as h5py does
  if (is_bool(t)) {
    value.element->element = type::uint8;
    value.element->numpy = "|b1";
  }
  H5Eclear2(H5E_DEFAULT);
}

void describe_array(value_type& value, hid_t t, const text_storage& texts) {
  const type_id base(checked(H5Tget_super(t), "its base type cannot be read"));
  auto inner = describe_type(base.native(), texts);
  if (!inner.element && H5Tget_class(base.native()) == H5T_COMPOUND)
    inner.refusal =
        "it is an array of compounds; name one of their members as a field, as DATASET[MEMBER], or DATASET[A.MEMBER] "
        "where the array is the member A";
  make_array_of(value, std::move(inner), t);
}

/// h5py's complex numbers: a compound of r and i, of one float type, side by side. It knows none of halves.
bool describe_complex(value_type& value, hid_t t) {
  if (H5Tget_nmembers(t) != 2 || H5Tget_member_index(t, "r") != 0 || H5Tget_member_index(t, "i") != 1) return false;
  const type_id r(H5Tget_member_type(t, 0)), i(H5Tget_member_type(t, 1));
  if (H5Tget_class(r.native()) != H5T_FLOAT || H5Tequal(r.native(), i.native()) <= 0) return false;
  const auto part = describe_type(r.native(), {});
  if (!part.element || !part.conversion.empty() || part.bytes < sizeof(float)) return false;
  if (H5Tget_member_offset(t, 0) != 0 || H5Tget_member_offset(t, 1) != part.bytes ||
      value.stored_bytes != 2 * part.bytes)
    return false;
  const auto e = *part.element;
  value.element = element_type{e.element, e.swapped, 2 * e.per_value, fmt::format("<c{}", 2 * part.bytes)};
  value.shape = {2};
  value.shape.insert(value.shape.end(), part.shape.begin(), part.shape.end());  // a long double is given as bytes
  value.memory = copy_of(t);
  value.bytes = value.stored_bytes;
  return true;
}

}  // namespace

std::string numpy_code(type t) {
  const auto bytes = size_of(t);
  const char kind = is_floating(t) ? 'f' : name_of(t).front() == 'u' ? 'u' : 'i';
  if (t == type::bfloat16) return "<f4";  // numpy has none: h5py reads it as float32
  return fmt::format("{}{}{}", bytes == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>', kind, bytes);
}

void clear_padding(padding kind, std::size_t text_bytes, std::span<std::byte> strings) noexcept {
  if (kind == padding::none) return;
  for (; strings.size() >= text_bytes; strings = strings.subspan(text_bytes)) {
    const auto text = strings.first(text_bytes);
    auto end = text.end();
    if (kind == padding::zeros_after_terminator)
      end = std::find(text.begin(), text.end(), std::byte{0});
    else
      while (end != text.begin() && end[-1] == std::byte{' '}) --end;
    std::fill(end, text.end(), std::byte{0});
  }
}

void make_array_of(value_type& value, value_type inner, hid_t array) {
  const int rank = checked(H5Tget_array_ndims(array), "its array's rank cannot be read");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  checked(H5Tget_array_dims2(array, extents.data()), "its array's extents cannot be read");
  value.refusal = std::move(inner.refusal);
  value.conversion = std::move(inner.conversion);
  if (!inner.element) return;
  if (inner.labels) {
    value.refusal = "arrays of texts of variable length are not read; store each text as a value, or as a fixed string";
    return;
  }
  value.element = std::move(inner.element);
  value.shape.assign(extents.begin(), extents.end());
  value.shape.insert(value.shape.end(), inner.shape.begin(), inner.shape.end());
  std::uint64_t count = 1;
  for (const auto extent : extents) count *= extent;  // libhdf5 has checked that the size does not overflow
  value.element->per_value *= count;
  value.bytes = inner.bytes * count;
  value.text_padding = inner.text_padding;
  value.text_bytes = inner.text_bytes;
  value.memory = type_id(checked(H5Tarray_create2(inner.memory.native(), static_cast<unsigned>(rank), extents.data()),
                                 "its array type cannot be made"));
}

value_type describe_type(hid_t t, const text_storage& texts) {
  const library_guard guard;
  value_type value;
  value.text = describe_text(t);
  value.stored_bytes = stored_size(t, texts);
  if (value.stored_bytes == 0) throw failure("its datatype cannot be understood", 0, library_messages());
  switch (H5Tget_class(t)) {
    case H5T_INTEGER: describe_integer(value, t); break;
    case H5T_FLOAT: describe_float(value, t); break;
    case H5T_BITFIELD: describe_bitfield(value, t); break;
    case H5T_OPAQUE: describe_bytes(value, t, "|V"); break;
    case H5T_ENUM: describe_enum(value, t); break;
    case H5T_ARRAY: describe_array(value, t, texts); break;
    case H5T_STRING: describe_string(value, t, texts); break;
    case H5T_COMPOUND:
      if (!describe_complex(value, t))
        value.refusal = "it is a compound; name one of its members as a field, as DATASET[MEMBER]";
      break;
    case H5T_VLEN:
      value.refusal = "values of variable length have no fixed place in memory; pad them to a fixed length";
      break;
    case H5T_REFERENCE: value.refusal = "references cannot be fed to a device; read what they point to"; break;
    default: value.refusal = "this class of datatype is not read"; break;
  }
  return value;
}

}  // namespace penstock::io
