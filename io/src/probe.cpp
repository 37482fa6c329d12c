#include "open_hdf5.hpp"
#include "raw_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

namespace penstock::io {
namespace {

struct known_format {
  std::string_view magic, name;
};
constexpr std::array<known_format, 13> formats{{
    {"\x1f\x8b", "a gzip file; unpack it first"},
    {"PK\x03\x04", "a zip archive (perhaps .npz); unpack it or convert it to HDF5"},
    {"\x93NUMPY", "a NumPy array; write it to HDF5 with h5py"},
    {"CDF\x01", "a classic netCDF file; convert it with nccopy -k nc4"},
    {"CDF\x02", "a classic netCDF file; convert it with nccopy -k nc4"},
    {"CDF\x05", "a classic netCDF file; convert it with nccopy -k nc4"},
    {"\x0e\x03\x13\x01", "an HDF4 file; convert it with h4toh5"},
    {"\x28\xb5\x2f\xfd", "a Zstandard file; unpack it first"},
    {"BZh", "a bzip2 file; unpack it first"},
    {"\xfd"
     "7zXZ",
     "an xz file; unpack it first"},
    {"\x89PNG", "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"version https://git-lfs", "a Git LFS pointer; fetch the file itself with git lfs pull"},
}};

[[noreturn]] void refuse_format(int fd, std::uint64_t bytes, const fault_seam& faults, std::string_view file) {
  std::array<char, 32> head{};
  const std::string_view start(head.data(), read_at(fd, 0, std::as_writable_bytes(std::span(head)), faults, file));
  for (const auto& known : formats)
    if (start.starts_with(known.magic)) throw failure(fmt::format("it is no HDF5 file, but {}", known.name));
  if (bytes == 0) throw failure("it is empty, no HDF5 file; write it again");
  throw failure("it is no HDF5 file: the format's signature is not in it; name a file that h5dump -H can list");
}

descriptor open_regular(const std::filesystem::path& path, const fault_seam& faults = {}) {
  // Not blocking: a named pipe without a writer would never open.
  descriptor fd = open_descriptor(path.c_str(), O_RDONLY | O_NONBLOCK, 0, faults);
  if (!fd) {
    const int code = errno;
    throw failure(not_opened(code), code);
  }
  struct stat status {};
  if (::fstat(fd.native(), &status) != 0) throw failure("its size cannot be read", errno);
  if (S_ISDIR(status.st_mode))
    throw failure("it is a folder, no HDF5 file; name the files in it, as FOLDER/*.h5", EISDIR);
  if (!S_ISREG(status.st_mode)) throw failure("it is no regular file; HDF5 needs one that can be read at any position");
  return fd;
}

}  // namespace

file_identity identify(const std::filesystem::path& path) { return identity_of(open_regular(path).native()); }

file_identity probe(const std::filesystem::path& path, const fault_seam& opening, const fault_seam& reading) {
  const auto fd = open_regular(path, opening);
  const auto identity = identity_of(fd.native());
  const auto bytes = identity.bytes;
  constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
  // The signature lies at 0, or after a user block of 512 bytes times a power of two (format specification, II.A).
  for (std::uint64_t at = 0; at + signature.size() <= bytes; at = at == 0 ? 512 : at * 2) {
    std::array<char, 8> found{};
    const auto got = read_at(fd.native(), at, std::as_writable_bytes(std::span(found)), reading, path.native());
    if (got < found.size())
      throw failure("it is truncated: it became shorter while it was looked at; copy or write it again");
    if (std::string_view(found.data(), found.size()) == signature) return identity;
  }
  refuse_format(fd.native(), bytes, reading, path.native());
}

}  // namespace penstock::io
