#include "open_reader.hpp"

#include "ask_for_memory.hpp"
#include "chunked_reader.hpp"
#include "contiguous_reader.hpp"
#include "external_bytes.hpp"
#include "label_reader.hpp"
#include "library_reader.hpp"
#include "source_files.hpp"
#include "staged_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace penstock::io {
namespace {

constexpr std::uint64_t begin_bytes = 64 << 10;
constexpr std::size_t small_sample = std::size_t{4} << 20;
constexpr std::size_t largest_sample = std::size_t{256} << 20;
constexpr std::size_t largest_stored_sample = largest_sample / 8 * 9;  // what cannot be shortened grows a little
constexpr std::size_t largest_slow_sample = std::size_t{16} << 20;
constexpr std::uint64_t few_chunks = 4096;      // looking them up one by one takes time in the square of their number
constexpr std::uint64_t small_index = 1 << 16;  // entries that cost nothing

/// Plugins of bitshuffle before 0.4 (Debian 12 has such a one) know no Zstandard: they take its frames for bits that
/// were only shuffled, and give an error or wrong values. Frames say themselves whether they decode.
bool may_be_misread_by_plugins(const dataset_description& d) {
  constexpr unsigned bitshuffle = 32008, with_zstd = 3;
  constexpr std::size_t compression = 4;  // the place of its values that says how bits are compressed
  return std::any_of(d.info.filters.begin(), d.info.filters.end(), [](const filter& f) {
    return f.id == bitshuffle && f.values.size() > compression && f.values[compression] == with_zstd;
  });
}

/// Deflate and szip take seconds for hundreds of MiB, here and again in libhdf5, whenever such a dataset is opened, and
/// nothing stops them. Formats of HDF5's own filters are the same in every version; plugins' are not, and what such a
/// one has a part in is compared however long it takes.
bool is_compared_as_stored(const dataset_description& d) {
  const auto is_slow = [](const filter& f) { return f.id == H5Z_FILTER_DEFLATE || f.id == H5Z_FILTER_SZIP; };
  const auto is_standard = [&](const filter& f) {
    return is_slow(f) || f.id == H5Z_FILTER_SHUFFLE || f.id == H5Z_FILTER_FLETCHER32;
  };
  const auto& filters = d.info.filters;
  return chunk_bytes(d) > largest_slow_sample && std::any_of(filters.begin(), filters.end(), is_slow) &&
         std::all_of(filters.begin(), filters.end(), is_standard);
}

/// Nothing where it cannot be read or decoded.
std::optional<std::vector<std::byte>> values_of(const dataset_reader& reader, const box& part,
                                                const dataset_description& d) {
  std::vector<std::byte> values(part.values() * d.value.bytes);
  try {
    scratch s(reader.memory(0).scratch);
    reader.read({part, 0, values.data(), packed_strides(part.count, part.rank, d.value.bytes)}, s);
  } catch (const failure&) {
    return std::nullopt;
  }
  return values;
}

/// True where libhdf5 gives nothing: there is nothing to compare.
bool gives_as_well(std::span<const std::byte> ours, const box& part, hid_t dataset, const dataset_description& d) {
  std::vector<std::byte> theirs(ours.size());
  try {
    library_read(dataset, d, part, theirs.data());
  } catch (const failure&) {
    return true;
  }
  return std::equal(ours.begin(), ours.end(), theirs.begin());
}

/// Whether the bytes stored for a chunk, and the filters that it went through, are those that libhdf5 hands out with it
/// undecoded.
bool stored_like_library(const chunked_reader& reader, const box& part, hid_t dataset) {
  const library_guard guard;
  std::array<hsize_t, max_rank> offset{};
  std::copy_n(part.start.begin(), part.rank, offset.begin());
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) < 0 || bytes > largest_stored_sample) return false;
  stored_chunk theirs{std::vector<std::byte>(bytes), 0};
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &theirs.mask, theirs.bytes.data()) < 0) return false;
  return reader.stored(part) == theirs;
}

/// A few stored chunks, read by us and by libhdf5: the index leans on the library's behaviour, so it is checked.
/// A chunk that does not decode here is damaged where it lies where libhdf5 says: that is told by the read that meets
/// it. libhdf5 is not asked to decode such a one: of a stream that ends short it gives undefined bytes, with success.
/// Of large chunks that take long to decode, it is only what is stored that is compared.
bool decodes_like_library(const chunked_reader& reader, hid_t dataset, const dataset_description& d) {
  if (chunk_bytes(d) > largest_sample || may_be_misread_by_plugins(d)) return true;
  const auto parts = reader.sample_chunks(chunk_bytes(d) > small_sample ? 1 : 3);
  return std::all_of(parts.begin(), parts.end(), [&](const box& part) {
    if (reader.has_wrong_size(part)) return true;  // libhdf5 would give memory that it never wrote
    const auto ours = is_compared_as_stored(d) ? std::nullopt : values_of(reader, part, d);
    return ours ? gives_as_well(*ours, part, dataset, d) : stored_like_library(reader, part, dataset);
  });
}

std::optional<chunk_index> index_of(const fault_seam& faults, std::uint64_t file_bytes, hid_t dataset,
                                    const chunk_grid& grid, std::uint64_t user_block) {
  // Where few are stored, the index costs by their number. A file holds fewer chunks than bytes: a header that claims
  // many more leaves most unwritten, or lies.
  const bool claims_much = grid.chunks() > file_bytes / 8 + 4096;
  if ((claims_much || grid.chunks() > small_index) && !lists_wrong_coordinates(dataset)) {
    const auto most = claims_much ? few_chunks : std::min(few_chunks, grid.chunks() / 16);
    auto stored = list_stored_chunks(dataset, grid, user_block, most);
    if (stored) {
      ask_for_memory(faults, memory_items::chunk_index, stored->size() * sizeof(chunk_index::numbered));
      return chunk_index(std::move(*stored));
    }
  }
  if (grid.chunks() > max_indexed_chunks) return std::nullopt;
  ask_for_memory(faults, memory_items::chunk_index, grid.chunks() * sizeof(chunk_entry));
  return chunk_index(build_chunk_index(dataset, grid));
}

/// Null, with `why`, where the dataset must be read through libhdf5.
std::unique_ptr<dataset_reader> open_chunked(read_world& world, const source_file& file, const open_dataset& dataset,
                                             const shared_description& d, std::string& why) {
  const hid_t id = dataset.id.native();
  const chunk_grid grid(d->info.shape, d->info.chunk_shape);
  const auto user_block = user_block_of(file.id);
  auto index = index_of(world.faults, world.files[file.number].identity.bytes, id, grid, user_block);
  if (!index) {
    why = fmt::format("{} chunks are too many for an index", grid.chunks());
    return nullptr;
  }
  if (!agrees_with_library(*index, id, grid, user_block)) {
    why = "its chunk index differs from what libhdf5 says";
    return nullptr;
  }
  auto reader =
      std::make_unique<chunked_reader>(world, file.number, file.through, world.datasets, d, grid, std::move(*index));
  if (decodes_like_library(*reader, id, *d)) return reader;
  why = "a chunk decodes to other bytes than libhdf5 gives";
  return nullptr;
}

std::unique_ptr<dataset_reader> open_external(read_world& world, const source_file& file, const open_dataset& dataset,
                                              const shared_description& d, std::string& why) {
  const library_guard guard;
  const property_id creation(checked(H5Dget_create_plist(dataset.id.native()), "its properties cannot be read"));
  auto bytes = std::make_unique<external_bytes>(world, creation.native(), d->external_files);
  auto reader = std::make_unique<contiguous_reader>(world, file.number, *d, std::move(bytes));
  if (begins_like_library(*reader, dataset.id.native(), *d)) return reader;
  why = "its external files give other bytes than libhdf5";
  return nullptr;
}

}  // namespace

source_file file_of(read_world& world, const open_dataset& dataset, const source_file& from, file_id& linked) {
  const library_guard guard;
  const auto name = file_name_of(dataset.id.native());
  if (name == world.files[from.number].path) return from;
  linked.reset(checked(H5Iget_file_id(dataset.id.native()), "its file cannot be found"));
  return {world.add_file(name, probe(name)), from.through, linked.native()};
}

void check_external_files(const read_world& world, const source_file& file, const open_dataset& dataset,
                          std::size_t files) {
  const library_guard guard;
  const property_id creation(checked(H5Dget_create_plist(dataset.id.native()), "its properties cannot be read"));
  refuse_special_files(creation.native(), files, world.files[file.number].path);
}

bool begins_like_library(const dataset_reader& reader, hid_t dataset, const dataset_description& d) {
  if (d.value.bytes > largest_slow_sample) return true;
  box part;
  part.rank = d.rank;
  std::copy(d.info.shape.begin(), d.info.shape.end(), part.count.begin());
  // As many of the first rows as make a small sample, or a part of the first row.
  for (std::size_t k = 0; k < d.rank && part.values() * d.value.bytes > begin_bytes; ++k)
    part.count[k] =
        std::clamp<std::uint64_t>(begin_bytes / (part.values() / part.count[k] * d.value.bytes), 1, part.count[k]);
  // Of a virtual dataset each source was looked at by itself: what cannot be read is damaged there.
  if (d.info.layout == layout::virtual_dataset) {
    const auto ours = values_of(reader, part, d);
    return !ours || gives_as_well(*ours, part, dataset, d);
  }
  std::vector<std::byte> theirs(part.values() * d.value.bytes);
  try {
    library_read(dataset, d, part, theirs.data());
  } catch (const failure&) {
    return true;
  }
  return values_of(reader, part, d) == theirs;
}

std::unique_ptr<dataset_reader> open_reader(read_world& world, const source_file& file, const open_dataset& dataset,
                                            const shared_description& d, dataset_info& info, std::size_t depth) {
  if (d->external_files > 0) check_external_files(world, file, dataset, d->external_files);
  if (d->value.labels) return std::make_unique<label_reader>(world, file, dataset, *d);
  if (d->info.access == access::staged) return std::make_unique<staged_reader>(world, dataset.id.native(), *d);
  if (d->info.access == access::direct) {
    const bool external = d->info.layout == layout::contiguous && d->external_files > 0;
    if (d->values() == 0 || (d->info.layout == layout::contiguous && !external))
      return std::make_unique<contiguous_reader>(world, file.number, *d);
    std::string why;
    try {
      auto reader = d->info.layout == layout::chunked ? open_chunked(world, file, dataset, d, why)
                    : external                        ? open_external(world, file, dataset, d, why)
                                                      : open_virtual(world, file, dataset, d, info, why, depth);
      ++world.datasets;
      if (reader) return reader;
    } catch (const unreadable&) {  // of a virtual dataset's source
      throw;
    } catch (const failure& e) {
      why = e.what();
    }
    info.access = access::locked;
    info.reason = std::move(why);
  }
  return std::make_unique<library_reader>(world, file.through, world.datasets++, d,
                                          world.files[file.number].identity.bytes);
}

}  // namespace penstock::io
