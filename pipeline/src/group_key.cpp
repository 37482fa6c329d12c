#include "group_key.hpp"

#include "byte_swap.hpp"
#include "field_scan.hpp"

#include <penstock/gpu/permutation.hpp>

#include <cstring>
#include <span>
#include <string>

namespace penstock::pipeline {
namespace {

/// What is one number in several ways has one here: -0 is 0, and whatever is not a number the same NaN.
template <class Word>
void unify(std::span<std::byte> bytes, bool in_other_order, Word exponent) {
  constexpr Word sign = Word{1} << (sizeof(Word) * 8 - 1);
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (in_other_order) word = swapped(word);
    const auto magnitude = static_cast<Word>(word & static_cast<Word>(~sign));
    if (magnitude == 0)
      word = 0;
    else if (magnitude > exponent)
      word = static_cast<Word>(sign - 1);
    else
      continue;
    if (in_other_order) word = swapped(word);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

}  // namespace

group_key::group_key(const io::row_reader& reader) : element_(reader.element()), bytes_(reader.row_bytes()) {
  for (const std::string& name : reader.class_names())
    name_keys_.push_back(mix_bytes(reinterpret_cast<const std::byte*>(name.data()), name.size()));
  if (element_.numpy.starts_with("|S")) text_bytes_ = std::stoul(element_.numpy.substr(2));
}

std::uint64_t group_key::operator()(const std::byte* row) {
  std::memcpy(bytes_.data(), row, bytes_.size());
  if (text_bytes_ > 0 || !name_keys_.empty()) return key_of_texts();
  switch (element_.element) {
    case type::float16: unify<std::uint16_t>(bytes_, element_.swapped, 0x7c00); break;
    case type::bfloat16: unify<std::uint16_t>(bytes_, element_.swapped, 0x7f80); break;
    case type::float32: unify<std::uint32_t>(bytes_, element_.swapped, 0x7f800000); break;
    case type::float64: unify<std::uint64_t>(bytes_, element_.swapped, 0x7ff0000000000000); break;
    default: break;
  }
  return mix_bytes(bytes_.data(), bytes_.size());
}

/// Of one text its key; of several, these mixed in turn.
std::uint64_t group_key::key_of_texts() {
  const std::size_t texts = bytes_.size() / (text_bytes_ > 0 ? text_bytes_ : sizeof(std::int32_t));
  if (texts == 0) return 0;
  std::uint64_t mixed = text_key(0);
  for (std::size_t n = 1; n < texts; ++n) mixed = gpu::mix(gpu::mix(mixed) ^ text_key(n));
  return mixed;
}

std::uint64_t group_key::text_key(std::size_t number) const {
  if (text_bytes_ == 0) {
    std::int32_t code = 0;
    std::memcpy(&code, bytes_.data() + number * sizeof code, sizeof code);
    return name_keys_[static_cast<std::size_t>(code)];
  }
  const std::byte* const text = bytes_.data() + number * text_bytes_;
  std::size_t length = text_bytes_;
  while (length > 0 && text[length - 1] == std::byte{0}) --length;  // the reader pads with zeros
  return mix_bytes(text, length);
}

}  // namespace penstock::pipeline
