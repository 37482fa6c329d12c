#include "external_bytes.hpp"

#include "library_prefixes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>

namespace penstock::io {
namespace {

struct external_file {
  std::filesystem::path name;
  off_t offset = 0;
  hsize_t bytes = 0;
};

external_file external_file_of(hid_t creation, std::size_t number) {
  std::array<char, PATH_MAX + 1> name{};
  external_file file;
  checked(
      H5Pget_external(creation, static_cast<unsigned>(number), name.size() - 1, name.data(), &file.offset, &file.bytes),
      "its external files cannot be read");
  file.name = name.data();
  return file;
}

}  // namespace

std::vector<std::filesystem::path> external_files(hid_t creation, std::size_t files,
                                                  const std::filesystem::path& owner) {
  const library_guard guard;
  std::vector<std::filesystem::path> there;
  for (std::size_t n = 0; n < files; ++n) {
    const std::filesystem::path name = external_file_of(creation, n).name;
    std::error_code missing;
    for (const std::filesystem::path& folder : external_folders(owner))
      if (std::filesystem::exists(folder / name, missing)) there.push_back(folder / name);
  }
  return there;
}

void refuse_special_files(hid_t creation, std::size_t files, const std::filesystem::path& owner) {
  std::error_code missing;
  for (const std::filesystem::path& file : external_files(creation, files, owner))
    if (!std::filesystem::is_regular_file(file, missing))
      throw unreadable(
          fmt::format("its external file {} is no regular file, which could be read at any position", file.string()));
}

std::uint64_t external_bytes_there(hid_t creation, std::size_t files, const std::filesystem::path& owner,
                                   std::uint64_t wanted) {
  const library_guard guard;
  std::uint64_t there = 0;
  for (std::size_t n = 0; n < files && wanted > 0; ++n) {
    const external_file file = external_file_of(creation, n);
    const auto some = std::min<std::uint64_t>(wanted, file.bytes);
    auto held = some;
    // Where a variable names a folder, it is in that one alone, or this is an error.
    const std::filesystem::path path = external_folders(owner).back() / file.name;
    std::error_code missing;
    if (const auto bytes = std::filesystem::file_size(path, missing); !missing && file.offset >= 0)
      held = std::min(some, bytes - std::min(bytes, static_cast<std::uint64_t>(file.offset)));
    there += held;
    wanted -= some;
  }
  return there + wanted;
}

external_bytes::external_bytes(read_world& world, hid_t creation, std::size_t files) : world_(world) {
  const library_guard guard;
  std::uint64_t first = 0;
  for (std::size_t n = 0; n < files; ++n) {
    const auto [name, offset, bytes] = external_file_of(creation, n);
    if (offset < 0) throw failure("an external file starts before its beginning; the header is damaged");
    // libhdf5 looks for it from the working directory, which may change before it is read.
    const std::filesystem::path path = std::filesystem::absolute(name);
    part p;
    p.file = world_.add_file(path, identify(path));
    p.offset = static_cast<std::uint64_t>(offset);
    p.bytes = std::min<std::uint64_t>(bytes, ~std::uint64_t{0} - first);  // the last may be unlimited
    p.first = first;
    first += p.bytes;
    parts_.push_back(p);
  }
}

void external_bytes::read(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> bounce) const {
  for (const auto& p : parts_) {
    if (out.empty()) return;
    if (offset < p.first || offset - p.first >= p.bytes) continue;
    const auto within = offset - p.first;
    const auto some = out.first(std::min<std::uint64_t>(out.size(), p.bytes - within));
    const auto file = world_.open_raw(p.file);
    const auto start = p.offset + within;
    const auto there = start < file->bytes() ? std::min<std::uint64_t>(some.size(), file->bytes() - start) : 0;
    if (there > 0) file->read(start, some.first(there), bounce);
    std::fill(some.begin() + static_cast<std::ptrdiff_t>(there), some.end(), std::byte{0});
    out = out.subspan(some.size());
    offset += some.size();
  }
  if (!out.empty()) throw damage("its external files hold fewer bytes than its shape; the header is damaged");
}

}  // namespace penstock::io
