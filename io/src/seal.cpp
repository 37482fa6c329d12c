#include "seal.hpp"

#include "descriptor.hpp"
#include "failure.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/seal.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
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

/// Fills `out` from `offset` on; false at the file's end.
bool read_all(int file, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const auto got = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failure(fmt::format("it cannot be read: {}", std::generic_category().message(errno)), errno);
    if (got == 0) return false;
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

std::string seal_of_first(int file, std::uint64_t bytes) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  checksum sum;
  for (std::uint64_t offset = 0; offset < bytes; offset += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), bytes - offset));
    if (!read_all(file, offset, piece)) throw failure("it became shorter while it was read");
    sum.add(piece);
  }
  return fmt::format("{}{:016x}\n", opening, sum.value());
}

}  // namespace

std::string seal_of(int file) { return seal_of_first(file, size_of_file(file)); }

bool check_seal(const std::filesystem::path& path) {
  return with_context({.file = path.string()}, [&] {
    // What is no file, or cannot be opened, is for who opens it next to tell.
    const descriptor opened = open_descriptor(path.c_str(), O_RDONLY | O_NONBLOCK);
    if (!opened) return false;
    const std::uint64_t bytes = size_of_file(opened.native());
    if (bytes < seal_bytes) return false;
    std::string found(seal_bytes, '\0');
    const bool there = read_all(opened.native(), bytes - seal_bytes, std::as_writable_bytes(std::span(found)));
    if (!there || !found.starts_with(opening) || found.back() != '\n') return false;
    const std::string expected = seal_of_first(opened.native(), bytes - seal_bytes);
    if (found == expected) return true;
    throw failure(
        fmt::format("it is damaged, or was changed: the checksum of its bytes is {}, and was {} when it was "
                    "written; take another copy",
                    expected.substr(opening.size(), 16), found.substr(opening.size(), 16)));
  });
}

}  // namespace penstock::io
