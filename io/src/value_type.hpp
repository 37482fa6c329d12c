#pragma once

#include "identifier.hpp"

#include <penstock/io/dataset_info.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::io {

/// What follows the text in a fixed string.
enum class padding { none, zeros_after_terminator, spaces };

/// What one value of a dataset is, and how it is read.
struct value_type {
  std::optional<element_type> element;  ///< absent where it is no plain array of numbers or bytes
  std::vector<std::uint64_t> shape;     ///< axes that a value adds to a row: of an array, of a string's bytes
  std::string text;                     ///< for people
  std::string refusal;                  ///< why `element` is absent, and what helps
  std::string conversion;               ///< why libhdf5 must convert it; empty where the stored bits are the value's
  std::size_t stored_bytes = 0;         ///< from one value to the next in the file: of the whole compound, for a member
  std::size_t offset = 0;               ///< of the member in its compound
  std::size_t bytes = 0;                ///< of a value as it is read
  padding text_padding = padding::none;  ///< of strings; reading gives zeros in its place, as h5py does
  std::size_t text_bytes = 0;            ///< of one string with its padding; a value may be an array of them
  bool labels = false;                   ///< texts of variable length, given as int32 class codes
  type_id memory;                        ///< in which libhdf5 reads it, so that both paths give the same bytes
};

/// What the texts and sequences of variable length of a file are there. Of a dataset's type libhdf5 says what it takes
/// in memory, where they are pointers.
struct text_storage {
  std::size_t reference_bytes = 0;
  bool as_references = false;  ///< texts are described as these bytes (text_reference.hpp), not as labels
};

/// Describes a datatype. Throws failure where libhdf5 cannot. Needs no guard.
value_type describe_type(hid_t type, const text_storage& texts);

/// Describes the member `name` of a compound (`a.b`: member b of the compound a); the exact name wins. Of an array of
/// compounds it is the array of their members. Throws failure that names the members there are.
value_type describe_member(hid_t type, const std::string& name, const text_storage& texts);

/// Bytes of a value in the file; with texts deeper than 32 types in each other, those in memory.
std::size_t stored_size(hid_t type, const text_storage& texts, int depth = 0);

/// Makes `value` the array type `array` of what `inner` is.
void make_array_of(value_type& value, value_type inner, hid_t array);

/// Puts zeros where a string's padding is, in strings that lie packed in `strings`.
void clear_padding(padding kind, std::size_t text_bytes, std::span<std::byte> strings) noexcept;

/// The datatype for people: "int16, big-endian", "compound {a: int32, b: float64}".
std::string describe_text(hid_t type, int depth = 0);

/// numpy's code of an element type in this machine's byte order: "<f4".
std::string numpy_code(type t);

}  // namespace penstock::io
