#pragma once

#include <penstock/fault.hpp>
#include <penstock/io/dataset_info.hpp>

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace penstock::io {

/// An HDF5 file, open for reading, without file locking. Thread-safe: every call into libhdf5 is under one mutex.
class file {
 public:
  /// Throws io::error: missing, no permission, not HDF5 (says what it is instead where that is plain), truncated.
  explicit file(const std::filesystem::path& path, fault_seam faults = {});
  file(file&&) noexcept;
  file& operator=(file&&) noexcept;
  ~file();

  const std::filesystem::path& path() const noexcept;
  /// Every dataset, walked in name order; hard links once, soft and external links not followed.
  std::vector<dataset_info> datasets() const;
  /// The dataset at `path`; throws io::error that names near matches.
  dataset_info describe(std::string_view path) const;
  /// The files that the values of the dataset at `path` come from: this one, those that external links on the way to it
  /// lead through, external raw files, and those of the sources of virtual datasets, and of theirs. Those that are not
  /// there, and what a damaged header hides, are left out. Named as they open from the working directory; sorted.
  /// Throws io::error where the system does not let them be looked at (EIO, EMFILE), and where virtual datasets are
  /// nested too deep to be read.
  std::vector<std::filesystem::path> files_behind(std::string_view path) const;
  /// Of these, those that hold values: external raw files, sources of virtual datasets, or the file that the dataset is
  /// stored in; not one that a link only leads through, nor a virtual dataset's own where all sources are in others.
  std::vector<std::filesystem::path> value_files(std::string_view path) const;
  bool contains(std::string_view path) const;  ///< throws io::error where the file cannot be read

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::io
