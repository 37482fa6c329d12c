#pragma once

#include <penstock/io/location.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// What a program reads, to be told apart from what it writes.
class input_files {
 public:
  input_files() = default;
  explicit input_files(std::vector<std::filesystem::path> files) : files_(std::move(files)) {}

  void add(const std::filesystem::path& file) { files_.push_back(file); }
  void add(const std::vector<penstock::io::location>& datasets) {
    datasets_.insert(datasets_.end(), datasets.begin(), datasets.end());
  }

  /// Whether `file` is one of the files, or one that values of the datasets come from, under whatever name: also by an
  /// external link, as the source of a virtual dataset, or as an external raw file. Looks into the datasets' files only
  /// where `file` is there, and once. Throws io::error where the system does not let these be read.
  bool include(const std::filesystem::path& file) const;

 private:
  std::vector<std::filesystem::path> files_;
  std::vector<penstock::io::location> datasets_;
  mutable std::optional<std::vector<std::filesystem::path>> behind_;
};

}  // namespace examples
