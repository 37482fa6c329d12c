#include "descriptor.hpp"
#include "native_type.hpp"
#include "open_hdf5.hpp"
#include "seal.hpp"
#include "stale_files.hpp"
#include "write_driver.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

namespace penstock::io {
namespace fs = std::filesystem;
namespace {

struct dataset_entry {
  dataset_id id;
  type element;
  std::vector<std::uint64_t> shape;
  std::size_t row_bytes;
  std::vector<std::uint64_t> chunk;  ///< empty: contiguous
};

std::size_t product_after_rows(const std::vector<std::uint64_t>& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), std::size_t{1}, std::multiplies<>{});
}

void check(std::string_view path, const std::vector<std::uint64_t>& shape, const create_options& options) {
  if (shape.empty()) throw std::invalid_argument(fmt::format("dataset {}: a shape needs at least the row axis", path));
  const auto& chunk = options.chunk_shape;
  if (chunk.empty() && (options.shuffle || options.deflate_level >= 0))
    throw std::invalid_argument(fmt::format("dataset {}: shuffle and compression need a chunk shape", path));
  if (options.deflate_level < -1 || options.deflate_level > 9)
    throw std::invalid_argument(
        fmt::format("dataset {}: deflate level {} is not in 0 to 9", path, options.deflate_level));
  if (chunk.empty()) return;
  if (chunk.size() != shape.size())
    throw std::invalid_argument(
        fmt::format("dataset {}: a chunk shape of {} axes for {} axes", path, chunk.size(), shape.size()));
  if (std::find(chunk.begin(), chunk.end(), 0u) != chunk.end())
    throw std::invalid_argument(fmt::format("dataset {}: a chunk's extents are at least 1", path));
}

/// Room for one row of chunks, so that writing row by row compresses each chunk once.
std::size_t chunk_cache_bytes(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk,
                              std::size_t element_bytes) {
  std::size_t bytes = element_bytes * chunk[0];
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    bytes *= (std::max<std::uint64_t>(shape[axis], 1) + chunk[axis] - 1) / chunk[axis] * chunk[axis];
  return std::clamp<std::size_t>(bytes, std::size_t{1} << 20, std::size_t{64} << 20);
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// fsync of a file or folder; the error of the system, or 0.
int sync_to_disk(const fs::path& path, int flags) {
  const descriptor opened = open_descriptor(path.c_str(), flags);
  if (!opened) return errno;
  int error = 0;
  do error = ::fsync(opened.native()) == 0 ? 0 : errno;
  while (error == EINTR);
  return error;
}

}  // namespace

struct writer::impl {
  fs::path path;
  fs::path target;  ///< what it names, past links
  fs::path temporary;
  descriptor lock;  ///< of the temporary file: it is being written
  fault_seam faults;
  write_outcome outcome;
  file_id file;
  std::map<std::string, dataset_entry, std::less<>> datasets;

  ~impl() {
    if (temporary.empty()) return;
    datasets.clear();
    file.reset();
    std::error_code ignored;
    if (is_name_of(lock.native(), temporary)) fs::remove(temporary, ignored);
  }

  error_context context(std::string_view dataset = {}, row_range rows = {}) const {
    return {.file = path.string(), .dataset = std::string(dataset), .rows = rows, .hdf5 = {}, .system = 0};
  }
  void ask(fault_site site, std::uint64_t offset, std::size_t bytes) const {
    if (!faults) return;
    const int code = faults->before(site, path.native(), offset, bytes).error;
    if (code != 0 && code != EINTR) refuse(code);  // what a signal interrupts is done again
  }
  /// After calls of libhdf5, which does not know of writes that failed.
  void check_writes() const {
    if (outcome.error != 0) refuse(outcome.error);
  }
  /// libhdf5's own errors after a write that failed are but its consequences.
  template <class F>
  void written(F&& call) {
    check_writes();
    try {
      call();
    } catch (const failure&) {
      check_writes();
      throw;
    }
    check_writes();
  }
  [[noreturn]] static void refuse(int code) {
    const char* const advice = code == EMFILE || code == ENFILE
                                   ? "raise the limit of open files (ulimit -n), or hold fewer open"
                                   : "check the folder's permissions and the free space";
    throw failure(fmt::format("it cannot be written ({}); {}", std::strerror(code), advice), code);
  }

  void open();
  void create_temporary();
  void create(std::string_view name, type element, const std::vector<std::uint64_t>& shape,
              const create_options& options);
  void write(const dataset_entry& to, std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes);
  void write_encoded(const dataset_entry& to, std::uint64_t first, std::uint32_t skipped,
                     std::span<const std::byte> encoded);
  void attribute(std::string_view object, std::string_view name, std::string_view text);
  void commit(bool sealed);
  void seal();

  const dataset_entry& find(std::string_view dataset) const {
    const auto found = datasets.find(dataset);
    if (found == datasets.end())
      throw std::invalid_argument(fmt::format("dataset {} was not created by this writer", dataset));
    return found->second;
  }
};

void writer::impl::open() {
  ask(fault_site::open_file, 0, 0);
  target = behind_links(path);
  if (fs::is_symlink(target)) refuse(ELOOP);
  std::error_code none;  // what cannot be asked is no folder, and no file
  if (!fs::is_directory(folder_of(target), none))
    throw failure(fmt::format("there is no folder {}; make it first", folder_of(target).string()), ENOENT);
  if (fs::exists(target, none) && !fs::is_regular_file(target, none))
    throw failure("it is there and no regular file; name another file", EEXIST);
  remove_stale_files(target);
  create_temporary();
  const library_guard guard;
  outcome = {.path = path.native(), .faults = faults, .error = 0};
  const property_id access = write_access(outcome);
  written([&] {
    file.reset(
        checked(H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.native()), "it cannot be created"));
  });
}

// Created by the system first, exclusively: libhdf5's own message would not say why a folder refuses, and another
// writer of this process may be at work on the same file.
void writer::impl::create_temporary() {
  const fs::path name = partial_name(target);
  int code = 0;
  const auto create = [&] {
    lock = open_descriptor(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0666);
    code = !lock ? errno : lock_partial(lock.native()) ? 0 : EEXIST;
  };
  create();
  if (code == EEXIST && remove_unless_locked(name)) create();
  if (code == EEXIST)
    throw failure(
        fmt::format("another writer is at work on it, in {}; wait for that, remove it where nobody is, or name another "
                    "file",
                    name.string()),
        code);
  if (code != 0) refuse(code);
  temporary = name;
}

void writer::impl::create(std::string_view name, type element, const std::vector<std::uint64_t>& shape,
                          const create_options& options) {
  check(name, shape, options);
  if (datasets.contains(name)) throw std::invalid_argument(fmt::format("dataset {} is there already", name));
  const library_guard guard;
  const property_id links(checked(H5Pcreate(H5P_LINK_CREATE), "link properties cannot be made"));
  checked(H5Pset_create_intermediate_group(links.native(), 1), "groups cannot be made");
  const property_id how(checked(H5Pcreate(H5P_DATASET_CREATE), "dataset properties cannot be made"));
  const property_id access(checked(H5Pcreate(H5P_DATASET_ACCESS), "dataset properties cannot be made"));
  checked(H5Pset_fill_time(how.native(), options.chunk_shape.empty() ? H5D_FILL_TIME_IFSET : H5D_FILL_TIME_NEVER),
          "the fill time cannot be set");
  if (!options.chunk_shape.empty()) {
    const std::vector<hsize_t> chunk(options.chunk_shape.begin(), options.chunk_shape.end());
    checked(H5Pset_chunk(how.native(), static_cast<int>(chunk.size()), chunk.data()),
            "libhdf5 refuses the chunk shape");
    if (options.shuffle) checked(H5Pset_shuffle(how.native()), "shuffle cannot be set");
    if (options.deflate_level >= 0)
      checked(H5Pset_deflate(how.native(), static_cast<unsigned>(options.deflate_level)),
              "compression cannot be set: this libhdf5 is built without zlib");
    checked(
        H5Pset_chunk_cache(access.native(), 521, chunk_cache_bytes(shape, options.chunk_shape, size_of(element)), 1.0),
        "the chunk cache cannot be set");
  }
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const space_id space(checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                               "libhdf5 refuses the shape"));
  const type_id stored = native_type(element);
  dataset_id id(checked(H5Dcreate2(file.native(), std::string(name).c_str(), stored.native(), space.native(),
                                   links.native(), how.native(), access.native()),
                        "the dataset cannot be created"));
  datasets.emplace(name, dataset_entry{std::move(id), element, shape, product_after_rows(shape) * size_of(element),
                                       options.chunk_shape});
}

void writer::impl::write(const dataset_entry& to, std::uint64_t first, std::uint64_t count,
                         std::span<const std::byte> bytes) {
  ask(fault_site::write_file, first * to.row_bytes, bytes.size());
  const library_guard guard;
  std::vector<hsize_t> start(to.shape.size(), 0), extent(to.shape.begin(), to.shape.end());
  start[0] = first;
  extent[0] = count;
  const space_id from(
      checked(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), "rows cannot be described"));
  const space_id where(checked(H5Dget_space(to.id.native()), "rows cannot be described"));
  checked(H5Sselect_hyperslab(where.native(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
          "rows cannot be selected");
  const type_id memory = native_type(to.element);
  checked(H5Dwrite(to.id.native(), memory.native(), from.native(), where.native(), H5P_DEFAULT, bytes.data()),
          "the rows cannot be written; check the free space");
}

void writer::impl::write_encoded(const dataset_entry& to, std::uint64_t first, std::uint32_t skipped,
                                 std::span<const std::byte> encoded) {
  ask(fault_site::write_file, first * to.row_bytes, encoded.size());
  const library_guard guard;
  std::vector<hsize_t> start(to.shape.size(), 0);
  start[0] = first;
  checked(H5Dwrite_chunk(to.id.native(), H5P_DEFAULT, skipped, start.data(), encoded.size(), encoded.data()),
          "the chunk cannot be written; check the free space");
}

void writer::impl::attribute(std::string_view object, std::string_view name, std::string_view text) {
  const library_guard guard;
  const object_id owner(
      checked(H5Oopen(file.native(), std::string(object).c_str(), H5P_DEFAULT), "there is no such object"));
  const type_id string(checked(H5Tcopy(H5T_C_S1), "a text type cannot be made"));
  checked(H5Tset_size(string.native(), H5T_VARIABLE), "a text type cannot be made");
  checked(H5Tset_cset(string.native(), H5T_CSET_UTF8), "a text type cannot be made");
  const space_id space(checked(H5Screate(H5S_SCALAR), "a scalar cannot be described"));
  const std::string key(name), value(text);
  if (H5Aexists(owner.native(), key.c_str()) > 0) checked(H5Adelete(owner.native(), key.c_str()), "an attribute stays");
  const attribute_id id(
      checked(H5Acreate2(owner.native(), key.c_str(), string.native(), space.native(), H5P_DEFAULT, H5P_DEFAULT),
              "the attribute cannot be created"));
  const char* const pointer = value.c_str();
  checked(H5Awrite(id.native(), string.native(), &pointer), "the attribute cannot be written");
}

void writer::impl::seal() {
  const std::string seal = seal_of(lock.native());
  ask(fault_site::write_file, 0, seal.size());
  if (::lseek(lock.native(), 0, SEEK_END) < 0) refuse(errno);
  for (std::size_t done = 0; done < seal.size();) {
    const auto wrote = ::write(lock.native(), seal.data() + done, seal.size() - done);
    if (wrote < 0 && errno != EINTR) refuse(errno);
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
}

void writer::impl::commit(bool sealed) {
  {
    const library_guard guard;
    checked(H5Fflush(file.native(), H5F_SCOPE_GLOBAL), "it cannot be flushed; check the free space");
    check_writes();
    datasets.clear();
    checked(H5Fclose(file.release()), "it cannot be closed; check the free space");
    check_writes();
  }
  if (sealed) seal();
  ask(fault_site::sync_file, 0, 0);
  if (const int code = sync_to_disk(temporary, O_RDONLY)) refuse(code);
  ask(fault_site::rename_file, 0, 0);
  if (!is_name_of(lock.native(), temporary))
    throw failure(fmt::format("somebody removed or replaced {} while it was written; write it again, and let nobody "
                              "else write there",
                              temporary.string()),
                  ESTALE);
  if (::rename(temporary.c_str(), target.c_str()) != 0) refuse(errno);
  temporary.clear();
  lock.reset();
  // Some file systems do not sync folders; the file itself is safe by then.
  sync_to_disk(folder_of(target), O_RDONLY | O_DIRECTORY);
}

writer::writer(std::filesystem::path path, fault_seam faults) : impl_(std::make_unique<impl>()) {
  impl_->path = std::move(path);
  impl_->faults = std::move(faults);
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->open(); }); });
}
writer::writer(writer&&) noexcept = default;
writer& writer::operator=(writer&&) noexcept = default;
writer::~writer() = default;

void writer::create(std::string_view dataset_path, type element, const std::vector<std::uint64_t>& shape,
                    const create_options& options) {
  if (!impl_->file) throw std::invalid_argument("the writer is committed already");
  with_context(impl_->context(dataset_path),
               [&] { impl_->written([&] { impl_->create(dataset_path, element, shape, options); }); });
}

void writer::write_rows(std::string_view dataset_path, std::uint64_t first_row, std::uint64_t count,
                        std::span<const std::byte> bytes) {
  const dataset_entry& to = impl_->find(dataset_path);
  if (first_row > to.shape[0] || count > to.shape[0] - first_row)
    throw std::invalid_argument(fmt::format("rows {} to {} of dataset {}, which has {}", first_row, first_row + count,
                                            dataset_path, to.shape[0]));
  if (bytes.size() != count * to.row_bytes)
    throw std::invalid_argument(
        fmt::format("{} bytes for {} rows of {} bytes of dataset {}", bytes.size(), count, to.row_bytes, dataset_path));
  if (bytes.empty()) return;
  with_context(impl_->context(dataset_path, {first_row, count}),
               [&] { impl_->written([&] { impl_->write(to, first_row, count, bytes); }); });
}

void writer::write_encoded_chunk(std::string_view dataset_path, std::uint64_t first_row, std::uint32_t skipped_filters,
                                 std::span<const std::byte> encoded) {
  const dataset_entry& to = impl_->find(dataset_path);
  if (to.chunk.empty() || !std::equal(to.chunk.begin() + 1, to.chunk.end(), to.shape.begin() + 1))
    throw std::invalid_argument(fmt::format("dataset {} is not stored in chunks of whole rows", dataset_path));
  if (first_row >= to.shape[0] || first_row % to.chunk[0] != 0)
    throw std::invalid_argument(fmt::format("no chunk of dataset {} begins at row {}: it has {} rows in chunks of {}",
                                            dataset_path, first_row, to.shape[0], to.chunk[0]));
  with_context(impl_->context(dataset_path, {first_row, std::min(to.chunk[0], to.shape[0] - first_row)}),
               [&] { impl_->written([&] { impl_->write_encoded(to, first_row, skipped_filters, encoded); }); });
}

void writer::attribute(std::string_view object_path, std::string_view name, std::string_view text) {
  if (!impl_->file) throw std::invalid_argument("the writer is committed already");
  with_context(impl_->context(object_path),
               [&] { impl_->written([&] { impl_->attribute(object_path, name, text); }); });
}

void writer::commit() {
  if (!impl_->file) throw std::invalid_argument("the writer is committed already");
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->commit(false); }); });
}

void writer::commit_sealed() {
  if (!impl_->file) throw std::invalid_argument("the writer is committed already");
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->commit(true); }); });
}

}  // namespace penstock::io
