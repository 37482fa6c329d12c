#pragma once

#include "netcdf.hpp"

#include <penstock/io/dataset_info.hpp>
#include <penstock/io/value_options.hpp>

#include <cstddef>

namespace penstock::io {

/// What elements of one type become: of `stored`, with the options that a caller chose.
/// Throws failure where there is no such conversion.
element_type converted(const element_type& stored, const value_options& options);

/// Arithmetic of a conversion, on values in native order.
struct value_arithmetic {
  double scale = 1, offset = 0, masked = 0;
  std::array<std::byte, 8> fill{};  ///< a value of the stored type
  bool masks = false;
};

/// Turns elements as they are stored into elements as they are wanted. Thread-safe.
class value_conversion {
 public:
  value_conversion() = default;  ///< leaves them as they are
  value_conversion(const element_type& stored, const element_type& wanted, const value_options& options,
                   const packing& how);

  bool empty() const noexcept { return convert_ == nullptr; }

  /// Converts `count` elements. The memories may overlap where `to` + their converted bytes is no less than `from` +
  /// their stored bytes: elements that grow may lie at the end of the memory that they fill.
  void operator()(const std::byte* from, std::byte* to, std::size_t count) const {
    convert_(from, to, count, swapped_bytes_, arithmetic_);
  }

  using function = void (*)(const std::byte* from, std::byte* to, std::size_t count, std::size_t swapped_bytes,
                            const value_arithmetic& how);

 private:
  function convert_ = nullptr;
  std::size_t swapped_bytes_ = 0;  // of an element whose bytes are to be swapped; else 0
  value_arithmetic arithmetic_;
};

}  // namespace penstock::io
