#pragma once

#include "identifier.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace penstock::io {

/// A file opened through a read-only file driver of our own, which can note where a read of raw data would go and skip
/// it. H5Dread_chunk then is a lookup of a chunk's address, and unlike H5Dget_chunk_info of HDF5 1.10 one that does not
/// scan. Every call needs the library guard.
class address_driver {
 public:
  /// Throws failure.
  explicit address_driver(const std::filesystem::path& path);
  ~address_driver();
  address_driver(const address_driver&) = delete;
  address_driver& operator=(const address_driver&) = delete;

  hid_t file() const noexcept { return file_.native(); }

  struct transfer {
    std::uint64_t address = 0, bytes = 0;
  };
  /// From here to the end of noted(), reads of raw data are noted and skipped.
  void note() noexcept;
  /// The read since note(); nothing where there was none, or more than one.
  std::optional<transfer> noted() noexcept;

 private:
  struct state;

  hid_t driver_ = -1;
  file_id file_;
  state* state_ = nullptr;  // libhdf5 owns it, with the file
};

}  // namespace penstock::io
