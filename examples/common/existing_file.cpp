#include "existing_file.hpp"

#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace examples {
namespace {

namespace fs = std::filesystem;

bool has(const std::string& file, const char* mark) try {
  return penstock::io::read_attribute(file, "/", mark).has_value();
} catch (const penstock::io::error&) {  // no HDF5, or damaged: nothing says that it is one of ours
  return false;
}

}  // namespace

bool is_hdf5(const fs::path& file) {
  constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return false;
  std::ifstream bytes(file, std::ios::binary);
  // It lies at 0, or after a user block of 512 bytes times a power of two (format specification, II.A).
  for (std::streamoff at = 0; bytes; at = at == 0 ? 512 : at * 2) {
    std::array<char, signature.size()> found{};
    if (bytes.seekg(at).read(found.data(), found.size()) && std::string_view(found.data(), found.size()) == signature)
      return true;
  }
  return false;
}

void check_own(const char* option, const std::string& file, const char* mark, const char* what) {
  std::error_code none;
  if (!fs::is_regular_file(file, none) || fs::file_size(file, none) == 0 || has(file, mark)) return;
  throw std::invalid_argument(fmt::format(
      "{} {}: the file is there and {}: it is not replaced; name another, or remove it", option, file, what));
}

}  // namespace examples
