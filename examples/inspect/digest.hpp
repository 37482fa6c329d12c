#pragma once

#include <penstock/io/dataset_info.hpp>

#include <filesystem>
#include <string>

namespace examples {

/// What reading a whole dataset gave.
struct digested {
  std::string crc32;  ///< 8 hex digits
  penstock::io::access access =
      penstock::io::access::locked;  ///< how it really was read: an index may turn out unusable
  std::string reason;
};

/// The crc32 of a dataset's elements in C order and this machine's byte order, read row by row in bounded
/// memory; bfloat16 counts as float32, as h5py reads it. Throws penstock::io::error.
digested digest(const std::filesystem::path& file, const std::string& dataset);

}  // namespace examples
