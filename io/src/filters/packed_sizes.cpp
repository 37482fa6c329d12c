#include "packed_sizes.hpp"

#include "../failure.hpp"

#include <string>

namespace penstock::io {
namespace {

[[noreturn]] void refuse(const char* filter) {
  throw damage(std::string("the parameters of its filter ") + filter +
               " fit no dataset: the header is damaged; copy or write the file again");
}

/// Walks through the tree of types that nbit's parameters describe.
class nbit_tree {
 public:
  explicit nbit_tree(std::span<const unsigned> parameters) : parameters_(parameters) {}

  /// Bits that are stored of one value, for a type of `kind` that has `room` bytes.
  std::uint64_t bits(unsigned kind, std::uint64_t room) {
    if (++depth_ > deepest) refuse("nbit");
    std::uint64_t found = 0;
    switch (kind) {
      case atomic: found = of_atomic(room); break;
      case array: found = of_array(room); break;
      case compound: found = of_compound(room); break;
      case unchanged: found = 8 * size(room); break;
      default: refuse("nbit");
    }
    --depth_;
    return found;
  }

  unsigned next() {
    if (at_ >= parameters_.size()) refuse("nbit");
    return parameters_[at_++];
  }

 private:
  static constexpr unsigned atomic = 1, array = 2, compound = 3, unchanged = 4;
  static constexpr std::size_t first = 4, deepest = 64;

  std::uint64_t size(std::uint64_t room) {
    const auto bytes = next();
    if (bytes == 0 || bytes > room) refuse("nbit");
    return bytes;
  }

  std::uint64_t of_atomic(std::uint64_t room) {
    const auto bits = 8 * size(room);
    const auto order = next(), precision = next(), offset = next();
    if (order > 1 || precision == 0 || std::uint64_t{precision} + offset > bits) refuse("nbit");
    return precision;
  }

  /// Of elements that are unchanged, libhdf5 takes the whole array.
  std::uint64_t of_array(std::uint64_t room) {
    const auto all = size(room);
    const auto kind = next();
    if (at_ >= parameters_.size() || parameters_[at_] == 0) refuse("nbit");
    const auto count = all / parameters_[at_];
    const auto each = bits(kind, all);
    return kind == unchanged ? 8 * all : count * each;
  }

  std::uint64_t of_compound(std::uint64_t room) {
    const auto all = size(room);
    std::uint64_t sum = 0;
    for (auto members = next(); members > 0; --members) {
      const auto offset = next();
      if (offset >= all) refuse("nbit");
      const auto kind = next();
      sum += bits(kind, all - offset);
    }
    return sum;
  }

  std::span<const unsigned> parameters_;
  std::size_t at_ = first, depth_ = 0;
};

/// Bytes of `count` values of `bits` each.
std::uint64_t bytes_of(std::uint64_t count, std::uint64_t bits, const char* filter) {
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(count, bits, &all)) refuse(filter);
  return all / 8 + (all % 8 != 0);
}

}  // namespace

bool nbit_packs(std::span<const unsigned> parameters) noexcept { return parameters.size() < 2 || parameters[1] == 0; }

bool scaleoffset_packs(std::span<const unsigned> parameters) noexcept {
  constexpr unsigned integers = 2;
  return parameters.size() < 5 || parameters[0] != integers || parameters[1] != 8 * std::uint64_t{parameters[4]};
}

packed_sizes nbit_sizes(std::span<const unsigned> parameters) {
  if (parameters.size() < 5 || parameters[0] != parameters.size()) refuse("nbit");
  const std::uint64_t values = parameters[2], value = parameters[4];
  if (values * value > 0xffffffff) refuse("nbit");  // libhdf5 multiplies 32 bits
  const auto bits = nbit_tree(parameters).bits(parameters[3], value);
  return {bytes_of(values, bits, "nbit"), values * value};
}

packed_sizes scaleoffset_sizes(std::span<const unsigned> parameters, std::span<const std::byte> front) {
  constexpr std::size_t count = 20, stored_front = 21;
  if (parameters.size() != count) refuse("scaleoffset");
  const std::uint64_t values = parameters[2], value = parameters[4];
  if (value != 1 && value != 2 && value != 4 && value != 8) refuse("scaleoffset");
  if (front.size() < scaleoffset_front) return {stored_front, 0};
  std::uint64_t bits = 0;
  for (std::size_t n = 0; n < scaleoffset_front; ++n) bits |= static_cast<std::uint64_t>(front[n]) << (8 * n);
  if (bits > 8 * value)
    throw damage(
        "its scaleoffset values have more bits than their type, so what is stored is damaged; copy or write the file "
        "again");
  return {stored_front + bytes_of(values, bits, "scaleoffset"), values * value};
}

}  // namespace penstock::io
