#include "seal.hpp"

#include "descriptor.hpp"
#include "failure.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/seal.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::io {
namespace {

// A line of text, so that who looks at the file's end can see what it is.
constexpr std::string_view opening = "\npenstock-seal ";
constexpr std::size_t seal_bytes = opening.size() + 16 + 1;

std::uint64_t size_of_file(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

/// An open file, and what the seam is told of it.
struct seen_file {
  int fd;
  const fault_seam& faults;
  std::string_view name;

  /// Fills `out` from `offset` on; false at the file's end.
  bool read_all(std::uint64_t offset, std::span<std::byte> out) const {
    return read_at(fd, offset, out, faults, name) == out.size();
  }
};

std::string seal_of_first(const seen_file& file, std::uint64_t bytes) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  checksum sum;
  for (std::uint64_t offset = 0; offset < bytes; offset += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), bytes - offset));
    if (!file.read_all(offset, piece)) throw failure("it became shorter while it was read");
    sum.add(piece);
  }
  return fmt::format("{}{:016x}\n", opening, sum.value());
}

}  // namespace

std::string seal_of(int file, const fault_seam& faults, std::string_view name) {
  return seal_of_first({file, faults, name}, size_of_file(file));
}

bool check_seal(const std::filesystem::path& path, const fault_seam& faults) {
  return with_context({.file = path.string()}, [&] {
    // What is no file, or cannot be opened, is for who opens it next to tell.
    const descriptor opened = open_descriptor(path.c_str(), O_RDONLY | O_NONBLOCK, 0, faults);
    if (!opened) return false;
    const seen_file file{opened.native(), faults, path.native()};
    const std::uint64_t bytes = size_of_file(opened.native());
    if (bytes < seal_bytes) return false;
    std::string found(seal_bytes, '\0');
    const bool there = file.read_all(bytes - seal_bytes, std::as_writable_bytes(std::span(found)));
    if (!there || !found.starts_with(opening) || found.back() != '\n') return false;
    const std::string expected = seal_of_first(file, bytes - seal_bytes);
    if (found == expected) return true;
    throw failure(
        fmt::format("it is damaged, or was changed: the checksum of its bytes is {}, and was {} when it was "
                    "written; take another copy",
                    expected.substr(opening.size(), 16), found.substr(opening.size(), 16)));
  });
}

}  // namespace penstock::io
