#include "failure.hpp"
#include "open_hdf5.hpp"
#include "partial_file.hpp"
#include "seal.hpp"
#include "write_driver.hpp"
#include "written_dataset.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

namespace penstock::io {

struct writer::impl {
  partial_file partial;
  write_outcome outcome;
  file_id file;
  std::map<std::string, written_dataset, std::less<>> datasets;

  impl(std::filesystem::path path, fault_seam faults) : partial(std::move(path), std::move(faults)) {}

  error_context context(std::string_view dataset = {}, row_range rows = {}) const {
    return {.file = partial.path().string(), .dataset = std::string(dataset), .rows = rows, .hdf5 = {}, .system = 0};
  }
  void check_open() const {
    if (!file) throw std::invalid_argument("the writer was committed already, with or without success; make another");
  }
  /// After calls of libhdf5, which does not know of writes that failed.
  void check_writes() const {
    if (outcome.error != 0) partial_file::refuse(outcome.error);
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

  void open();
  void attribute(std::string_view object, std::string_view name, std::string_view text);
  void commit(bool sealed);

  const written_dataset& find(std::string_view dataset) const {
    check_open();
    const auto found = datasets.find(dataset);
    if (found == datasets.end())
      throw std::invalid_argument(fmt::format("dataset {} was not created by this writer", dataset));
    return found->second;
  }
};

void writer::impl::open() {
  partial.create();
  const library_guard guard;
  outcome = {.path = partial.path().native(), .faults = partial.faults(), .error = 0};
  const property_id access = write_access(outcome);
  written([&] {
    file.reset(checked(H5Fcreate(partial.name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.native()),
                       "it cannot be created"));
  });
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

void writer::impl::commit(bool sealed) {
  {
    const library_guard guard;
    checked(H5Fflush(file.native(), H5F_SCOPE_GLOBAL), "it cannot be flushed; check the free space");
    check_writes();
    datasets.clear();
    checked(H5Fclose(file.release()), "it cannot be closed; check the free space");
    check_writes();
  }
  if (sealed) partial.append(seal_of(partial.native(), partial.faults(), partial.path().native()));
  partial.publish();
}

writer::writer(std::filesystem::path path, fault_seam faults)
    : impl_(std::make_unique<impl>(std::move(path), std::move(faults))) {
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->open(); }); });
}
writer::writer(writer&&) noexcept = default;
writer& writer::operator=(writer&&) noexcept = default;
writer::~writer() = default;

void writer::create(std::string_view dataset_path, type element, const std::vector<std::uint64_t>& shape,
                    const create_options& options) {
  impl_->check_open();
  if (impl_->datasets.contains(dataset_path))
    throw std::invalid_argument(fmt::format("dataset {} is there already", dataset_path));
  with_context(impl_->context(dataset_path), [&] {
    impl_->written([&] {
      impl_->datasets.emplace(dataset_path,
                              create_dataset(impl_->file.native(), dataset_path, element, shape, options));
    });
  });
}

void writer::write_rows(std::string_view dataset_path, std::uint64_t first_row, std::uint64_t count,
                        std::span<const std::byte> bytes) {
  const written_dataset& to = impl_->find(dataset_path);
  if (first_row > to.shape[0] || count > to.shape[0] - first_row)
    throw std::invalid_argument(fmt::format("rows {} to {} of dataset {}, which has {}", first_row, first_row + count,
                                            dataset_path, to.shape[0]));
  if (bytes.size() != count * to.row_bytes)
    throw std::invalid_argument(
        fmt::format("{} bytes for {} rows of {} bytes of dataset {}", bytes.size(), count, to.row_bytes, dataset_path));
  if (bytes.empty()) return;
  with_context(impl_->context(dataset_path, {first_row, count}),
               [&] { impl_->written([&] { io::write_rows(to, first_row, count, bytes); }); });
}

void writer::write_encoded_chunk(std::string_view dataset_path, std::uint64_t first_row, std::uint32_t skipped_filters,
                                 std::span<const std::byte> encoded) {
  const written_dataset& to = impl_->find(dataset_path);
  if (to.chunk.empty() || !std::equal(to.chunk.begin() + 1, to.chunk.end(), to.shape.begin() + 1))
    throw std::invalid_argument(fmt::format("dataset {} is not stored in chunks of whole rows", dataset_path));
  if (first_row >= to.shape[0] || first_row % to.chunk[0] != 0)
    throw std::invalid_argument(fmt::format("no chunk of dataset {} begins at row {}: it has {} rows in chunks of {}",
                                            dataset_path, first_row, to.shape[0], to.chunk[0]));
  with_context(impl_->context(dataset_path, {first_row, std::min(to.chunk[0], to.shape[0] - first_row)}),
               [&] { impl_->written([&] { write_chunk(to, first_row, skipped_filters, encoded); }); });
}

void writer::attribute(std::string_view object_path, std::string_view name, std::string_view text) {
  impl_->check_open();
  with_context(impl_->context(object_path),
               [&] { impl_->written([&] { impl_->attribute(object_path, name, text); }); });
}

void writer::commit() {
  impl_->check_open();
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->commit(false); }); });
}

void writer::commit_sealed() {
  impl_->check_open();
  with_context(impl_->context(), [&] { impl_->written([&] { impl_->commit(true); }); });
}

}  // namespace penstock::io
