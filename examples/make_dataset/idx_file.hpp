#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace examples {

/// A gzip-compressed file of unsigned bytes in the IDX format, read from its start: two zero bytes, the element type
/// (8), the number of dimensions, each extent as four bytes with the highest first, then the elements
/// (http://yann.lecun.com/exdb/mnist, "the IDX file format").
class idx_file {
 public:
  /// Throws std::runtime_error that says what is missing or wrong.
  explicit idx_file(std::filesystem::path path);

  const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }
  /// Fills `out` with the elements that come next.
  void read(std::span<std::byte> out);

 private:
  struct close_file {
    void operator()(gzFile_s* file) const noexcept { gzclose(file); }
  };

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, close_file> file_;
  std::vector<std::uint64_t> shape_;
};

}  // namespace examples
