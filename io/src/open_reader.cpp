#include "open_reader.hpp"

#include "chunked_reader.hpp"
#include "contiguous_reader.hpp"
#include "library_reader.hpp"
#include "staged_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::size_t largest_sample = std::size_t{256} << 20;
constexpr std::uint64_t few_chunks = 1024;  // looking them up one by one takes time in the square of their number

/// The first stored chunk, read by us and by libhdf5: the index leans on the library's behaviour, so it is checked.
bool decodes_like_library(const chunked_reader& reader, hid_t dataset, const dataset_description& d) {
  if (chunk_bytes(d) > largest_sample) return true;
  const auto ours = reader.first_chunk();
  if (!ours) return true;  // nothing to compare; damage is told by the read that meets it
  std::vector<std::byte> theirs(ours->values.size());
  try {
    library_read(dataset, d, ours->inside, theirs.data());
  } catch (const failure&) {
    return true;  // a plugin that libhdf5 lacks, for one
  }
  return theirs == ours->values;
}

std::optional<chunk_index> index_of(const read_world::known_file& file, hid_t dataset, const dataset_description& d,
                                    const chunk_grid& grid, std::uint64_t user_block) {
  // A file holds fewer chunks than bytes; a header that claims many more leaves most unwritten, or lies.
  if (grid.chunks() > file.identity.bytes / 8 + 4096) {
    auto stored = list_stored_chunks(dataset, grid, user_block, few_chunks);
    if (!stored.empty()) return chunk_index(std::move(stored));
  }
  if (grid.chunks() > max_indexed_chunks) return std::nullopt;
  return chunk_index(build_chunk_index(file.path, d.info.path, dataset, grid));
}

/// Null, with `why`, where the dataset must be read through libhdf5.
std::unique_ptr<chunked_reader> open_chunked(read_world& world, std::size_t file_number, std::size_t number, hid_t file,
                                             hid_t dataset, const shared_description& d, std::string& why) {
  const chunk_grid grid(d->info.shape, d->info.chunk_shape);
  const auto user_block = user_block_of(file);
  auto index = index_of(world.files[file_number], dataset, *d, grid, user_block);
  if (!index) {
    why = fmt::format("{} chunks are too many for an index", grid.chunks());
    return nullptr;
  }
  if (!agrees_with_library(*index, dataset, grid, user_block)) {
    why = "its chunk index differs from what libhdf5 says";
    return nullptr;
  }
  auto reader = std::make_unique<chunked_reader>(world, file_number, number, d, grid, std::move(*index));
  if (decodes_like_library(*reader, dataset, *d)) return reader;
  why = "its first chunk decodes to other bytes than libhdf5 gives";
  return nullptr;
}

}  // namespace

std::unique_ptr<dataset_reader> open_reader(read_world& world, std::size_t file_number, std::size_t number, hid_t file,
                                            hid_t dataset, const shared_description& d, dataset_info& info) {
  if (d->info.access == access::staged) return std::make_unique<staged_reader>(world, dataset, *d);
  if (d->info.access == access::direct && (d->info.layout != layout::chunked || d->values() == 0))
    return std::make_unique<contiguous_reader>(world, file_number, *d);
  if (d->info.access == access::direct) {
    std::string why;
    try {
      if (auto reader = open_chunked(world, file_number, number, file, dataset, d, why)) return reader;
    } catch (const failure& e) {
      why = e.what();
    }
    info.access = access::locked;
    info.reason = std::move(why);
  }
  return std::make_unique<library_reader>(world, file_number, number, d);
}

}  // namespace penstock::io
