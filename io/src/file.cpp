#include <penstock/io/file.hpp>

#include "datasets_near.hpp"
#include "describe.hpp"
#include "files_behind.hpp"
#include "open_hdf5.hpp"
#include "read_driver.hpp"
#include "source_files.hpp"
#include "walk.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>

namespace penstock::io {
namespace {

std::string absolute(std::string_view path) {
  return path.starts_with('/') ? std::string(path) : "/" + std::string(path);
}

dataset_info unreadable_dataset(const std::string& path, const std::string& sentence) {
  dataset_info info;
  info.path = path;
  info.type_text = "unreadable";
  info.unreadable = info.reason = sentence;
  return info;
}

}  // namespace

struct file::impl {
  std::filesystem::path path;
  fault_seam faults{};
  file_id id;

  error_context context() const { return {.file = path.string(), .dataset = {}, .rows = {}, .hdf5 = {}, .system = 0}; }

  dataset_info describe(const std::string& dataset) const {
    const library_guard guard;
    const open_dataset opened(id.native(), dataset);
    dataset_description d = describe_dataset(opened);
    if (d.info.layout == layout::virtual_dataset) try {
        auto sources = survey_sources(opened.id.native(), faults);
        d.info.missing_sources = std::move(sources.absent);
        d.external_shortage = std::move(sources.short_source);
      } catch (const failure& e) {
        if (!is_absence(e.system)) throw;
        d.info.unreadable = e.what();
      }
    tell_shortage(d.info, d.external_shortage);
    return std::move(d.info);
  }

  dataset_files files_of(std::string_view name) const {
    error_context where = context();
    where.dataset = absolute(name);
    return with_context(where, [&] { return io::files_behind(id.native(), path, where.dataset, faults); });
  }
};

file::file(const std::filesystem::path& path, fault_seam faults) : impl_(std::make_unique<impl>()) {
  impl_->path = path;
  impl_->faults = faults;
  with_context(impl_->context(), [&] {
    probe(path, faults, faults);
    impl_->id = open_hdf5(path, faults);
  });
}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

const std::filesystem::path& file::path() const noexcept { return impl_->path; }

std::vector<dataset_info> file::datasets() const {
  std::vector<dataset_info> all;
  const auto add = [&](const std::string& path) {
    try {
      all.push_back(impl_->describe(path));
    } catch (const failure& e) {
      all.push_back(unreadable_dataset(path, e.what()));
    }
  };
  const auto damaged = [&](const std::string& path, const std::string& sentence) {
    all.push_back(unreadable_dataset(path, sentence));
  };
  with_context(impl_->context(), [&] { walk_datasets(impl_->id.native(), "", add, damaged); });
  return all;
}

dataset_info file::describe(std::string_view path) const {
  const auto name = absolute(path);
  try {
    return impl_->describe(name);
  } catch (const failure& e) {
    const auto near = is_absence(e.system) ? datasets_near(impl_->id.native(), name) : std::string();
    throw error(e.what() + near,
                {.file = impl_->path.string(), .dataset = name, .rows = {}, .hdf5 = e.hdf5, .system = e.system});
  }
}

std::vector<std::filesystem::path> file::files_behind(std::string_view path) const { return impl_->files_of(path).all; }

std::vector<std::filesystem::path> file::value_files(std::string_view path) const {
  return impl_->files_of(path).values;
}

bool file::contains(std::string_view path) const {
  const library_guard guard;
  take_driver_error();
  const object_id object(H5Oopen(impl_->id.native(), absolute(path).c_str(), H5P_DEFAULT));
  const auto messages = library_messages();
  if (const int system = object ? 0 : take_driver_error(); !is_absence(system))
    throw error(
        why_unread(system, messages),
        {.file = impl_->path.string(), .dataset = absolute(path), .rows = {}, .hdf5 = messages, .system = system});
  return object && H5Iget_type(object.native()) == H5I_DATASET;
}

}  // namespace penstock::io
