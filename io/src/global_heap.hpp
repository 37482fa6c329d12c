#pragma once

#include "byte_source.hpp"
#include "text_reference.hpp"

#include <penstock/fault.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::io {

/// The global heap of a file (HDF5 File Format Specification 3.0, III.E), in which texts of variable length lie: found
/// by what refers to them, and checked, whatever the file says. Each collection is walked once; what is remembered of
/// its objects takes no more memory than they take of the file. For one thread at a time.
class global_heap {
 public:
  /// `file` has `file_bytes`, and must outlive this. `faults` is asked before memory is taken.
  global_heap(const byte_source& file, std::uint64_t file_bytes, const address_format& format, fault_seam faults = {});

  struct object {
    std::uint32_t place = 0;  ///< of its bytes in the collection, in units of 8
    std::uint32_t bytes = 0;
    std::int32_t note = -1;  ///< the caller's: kept with the object, at first -1
    std::uint16_t index = 0;
  };

  /// The object that is referred to, valid until the next call. Null where there is none, or none of that length: then
  /// why() says what is wrong with the file. Throws failure where the system does not let the file be read, but for
  /// EIO, which is damage.
  object* find(const text_reference& where);
  std::string why() const;

  /// The text of the object that find() gave last, up to a terminating zero, as libhdf5 gives it. Throws failure.
  std::string text();

 private:
  struct collection {
    std::uint64_t start = 0;        // in the file
    std::vector<object> objects{};  // by index
    std::string why{};              // it cannot be used
  };

  collection& open(std::uint64_t address);
  std::uint64_t check_header(std::uint64_t address, collection& c);
  void walk(collection& c, std::uint64_t bytes);
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::size_t count);

  const byte_source& file_;
  std::uint64_t file_bytes_;
  address_format format_;
  fault_seam faults_;
  std::unordered_map<std::uint64_t, collection> collections_;  // by address
  std::uint64_t collected_bytes_ = 0;                          // of all collections: they do not overlap
  collection refused_;                                         // one that has no header is not kept

  text_reference last_;
  collection* in_ = nullptr;
  object* found_ = nullptr;

  std::vector<std::byte> window_;
  std::uint64_t window_start_ = 0;
};

}  // namespace penstock::io
