#include "value_conversion.hpp"

#include "failure.hpp"
#include "value_type.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock::io {
namespace {

// Elements go through memory of this thread, in pieces that stay in the first-level cache: the compiler then knows that
// source and target do not overlap, and vectorises.
constexpr std::size_t piece_elements = 512;

template <class Word>
[[gnu::always_inline]] inline void swap_words(std::byte* bytes, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes + i * sizeof(Word), &word, sizeof(Word));
  }
}

[[gnu::always_inline]] inline void swap_elements(std::byte* bytes, std::size_t count, std::size_t width) noexcept {
  if (width == 2) swap_words<std::uint16_t>(bytes, count);
  if (width == 4) swap_words<std::uint32_t>(bytes, count);
  if (width == 8) swap_words<std::uint64_t>(bytes, count);
}

/// A number that the processor knows. Exact.
template <class T>
[[gnu::always_inline]] inline auto number(T x) noexcept {
  if constexpr (std::is_same_v<T, bfloat16_t>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
  } else if constexpr (std::is_same_v<T, float16_t>) {
    // The exponent and mantissa of a half, read as a float's, are 2^-112 of its value; subnormals too.
    const auto magnitude = static_cast<std::uint32_t>(x.bits & 0x7fff) << 13;
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const auto infinite = (0u - static_cast<std::uint32_t>(magnitude >= 0x0f800000u)) & 0x7f800000u;  // or NaN
    return std::bit_cast<float>(finite | infinite | static_cast<std::uint32_t>(x.bits & 0x8000) << 16);
  } else {
    return x;
  }
}

template <class T>
[[gnu::always_inline]] inline bool is_fill(T x, T fill) noexcept {
  const auto a = number(x), b = number(fill);
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return (a == b) | ((a != a) & (b != b));  // NaN is the fill value of many; no branch, so that loops are vectorised
  else
    return a == b;
}

template <class From, class To, bool Arithmetic>
[[gnu::always_inline]] inline void convert_pieces(const std::byte* from, std::byte* to, std::size_t count,
                                                  std::size_t swapped_bytes, const value_arithmetic& how) noexcept {
  From fill{};
  std::memcpy(&fill, how.fill.data(), sizeof(From));
  const To masked = static_cast<To>(how.masked);
  std::array<From, piece_elements> in;
  std::array<To, piece_elements> out;
  for (std::size_t done = 0; done < count; done += piece_elements) {
    const std::size_t some = std::min(piece_elements, count - done);
    std::memcpy(in.data(), from + done * sizeof(From), some * sizeof(From));
    swap_elements(reinterpret_cast<std::byte*>(in.data()), some, swapped_bytes);
    if constexpr (!Arithmetic) {
      for (std::size_t i = 0; i < some; ++i) out[i] = static_cast<To>(number(in[i]));
    } else {
      for (std::size_t i = 0; i < some; ++i)
        out[i] = static_cast<To>(static_cast<double>(number(in[i])) * how.scale + how.offset);
      if (how.masks)
        for (std::size_t i = 0; i < some; ++i) out[i] = is_fill(in[i], fill) ? masked : out[i];
    }
    std::memcpy(to + done * sizeof(To), out.data(), some * sizeof(To));
  }
}

[[gnu::always_inline]] inline void swap_pieces(const std::byte* from, std::byte* to, std::size_t count,
                                               std::size_t width) noexcept {
  if (from == to) return swap_elements(to, count, width);
  std::array<std::byte, piece_elements * 8> piece;
  const std::size_t most = piece.size() / width;
  for (std::size_t done = 0; done < count; done += most) {
    const std::size_t some = std::min(most, count - done);
    std::memcpy(piece.data(), from + done * width, some * width);
    swap_elements(piece.data(), some, width);
    std::memcpy(to + done * width, piece.data(), some * width);
  }
}

/// The same loops for every x86-64 processor, and for those with AVX2.
struct any_processor {
  template <class From, class To, bool Arithmetic>
  static void convert(const std::byte* from, std::byte* to, std::size_t count, std::size_t swapped_bytes,
                      const value_arithmetic& how) {
    convert_pieces<From, To, Arithmetic>(from, to, count, swapped_bytes, how);
  }
  static void swap(const std::byte* from, std::byte* to, std::size_t count, std::size_t width,
                   const value_arithmetic&) {
    swap_pieces(from, to, count, width);
  }
};

#if defined(__x86_64__)
struct with_avx2 {
  template <class From, class To, bool Arithmetic>
  [[gnu::target("avx2,f16c")]] static void convert(const std::byte* from, std::byte* to, std::size_t count,
                                                   std::size_t swapped_bytes, const value_arithmetic& how) {
    std::size_t done = 0;
    // The processor has an instruction for this one. What it loads lies before what later ones do.
    if constexpr (std::is_same_v<From, float16_t> && std::is_same_v<To, float> && !Arithmetic)
      for (; swapped_bytes == 0 && done + 8 <= count; done += 8)
        _mm256_storeu_ps(reinterpret_cast<float*>(to + done * 4),
                         _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done * 2))));
    convert_pieces<From, To, Arithmetic>(from + done * sizeof(From), to + done * sizeof(To), count - done,
                                         swapped_bytes, how);
  }
  [[gnu::target("avx2")]] static void swap(const std::byte* from, std::byte* to, std::size_t count, std::size_t width,
                                           const value_arithmetic&) {
    swap_pieces(from, to, count, width);
  }
};
#endif

template <class Processor>
value_conversion::function function_on(type from, std::optional<type> to, bool arithmetic) {
  if (!to) return Processor::swap;
  return visit_type(from, [&](auto zero) -> value_conversion::function {
    using From = decltype(zero);
    if (*to == type::float32)
      return arithmetic ? Processor::template convert<From, float, true>
                        : Processor::template convert<From, float, false>;
    return arithmetic ? Processor::template convert<From, double, true>
                      : Processor::template convert<From, double, false>;
  });
}

value_conversion::function function_for(type from, std::optional<type> to, bool arithmetic) {
#if defined(__x86_64__)
  // Every processor with AVX2 has F16C, by which clang 16 cannot ask.
  if (__builtin_cpu_supports("avx2")) return function_on<with_avx2>(from, to, arithmetic);
#endif
  return function_on<any_processor>(from, to, arithmetic);
}

bool is_complex(const element_type& e) { return e.numpy.find('c') != std::string::npos && is_floating(e.element); }

bool is_number(const element_type& e) { return e.numpy == numpy_code(e.element) || e.numpy == "|b1" || is_complex(e); }

}  // namespace

element_type converted(const element_type& stored, const value_options& options) {
  auto wanted = stored;
  if (options.native_order || options.as || options.netcdf) wanted.swapped = false;
  if (!options.as && !options.netcdf) return wanted;
  if (options.as && *options.as != type::float32 && *options.as != type::float64)
    throw std::invalid_argument(
        fmt::format("value_options::as is {}; reading converts to float32 and float64 only", name_of(*options.as)));
  if (!is_number(stored))
    throw failure(fmt::format("its values are bytes ({}), which do not become numbers", stored.numpy));
  const bool narrow = size_of(stored.element) <= 2 || stored.element == type::float32;
  wanted.element = options.as.value_or(narrow ? type::float32 : type::float64);
  if (wanted.element != stored.element)
    wanted.numpy = is_complex(stored) ? fmt::format("<c{}", 2 * size_of(wanted.element)) : numpy_code(wanted.element);
  return wanted;
}

value_conversion::value_conversion(const element_type& stored, const element_type& wanted, const value_options& options,
                                   const packing& how)
    : swapped_bytes_(stored.swapped ? size_of(stored.element) : 0) {
  const bool arithmetic = options.netcdf && !how.empty();
  if (stored.element == wanted.element && !arithmetic) {
    if (stored.swapped && !wanted.swapped) convert_ = function_for(stored.element, std::nullopt, false);
    return;
  }
  convert_ = function_for(stored.element, wanted.element, arithmetic);
  arithmetic_ = {how.scale, how.offset, options.masked, how.fill.value_or(std::array<std::byte, 8>{}),
                 how.fill.has_value()};
}

}  // namespace penstock::io
