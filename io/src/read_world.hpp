#pragma once

#include "chunk_cache.hpp"
#include "chunk_check.hpp"
#include "counters.hpp"
#include "open_files.hpp"
#include "raw_file.hpp"
#include "source_check.hpp"

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::io {

/// A dataset that is open in libhdf5.
struct library_dataset {
  file_id file;
  dataset_id dataset;
  std::unique_ptr<chunk_check> check;     ///< asked before each read
  std::unique_ptr<source_check> sources;  ///< the same of a virtual dataset; or null
};

/// What the readers of one field share.
struct read_world {
  explicit read_world(const read_options& options)
      : how(options.around_page_cache ? caching::around : caching::page_cache),
        faults(options.faults),
        checks(options.faults),
        raw(options.open_files),
        library(options.open_files) {}

  struct known_file {
    std::filesystem::path path;
    file_identity identity;
  };

  /// The number of a file, opened raw later; the same for the same path.
  std::size_t add_file(const std::filesystem::path& path, const file_identity& identity) {
    const auto [known, is_new] = numbers.try_emplace(path.native(), files.size());
    if (is_new) files.push_back({path, identity});
    return known->second;
  }

  /// From here on reads are a caller's: counted, and seen by the fault seam. Samples read before were not.
  void opened() {
    opening = false;
    raw.close_idle();
    count.reset();
  }

  caching how;  ///< of raw files
  bool opening = true;
  fault_seam faults;
  check_memory checks;  ///< for all that is read through libhdf5
  counters count;
  std::vector<known_file> files;                         ///< distinct; readers name them by number
  std::unordered_map<std::string, std::size_t> numbers;  ///< by path
  open_files<raw_file> raw;
  open_files<library_dataset> library;  ///< by number of dataset
  std::size_t datasets = 0;             ///< numbers given to datasets so far
  std::string short_source;             ///< of the virtual dataset that is being opened: whose external files are short
  std::unique_ptr<chunk_cache> cache;   ///< null where nothing is kept

  std::shared_ptr<raw_file> open_raw(std::size_t file) {
    return raw.acquire(file, [&] {
      return std::make_shared<raw_file>(files[file].path, files[file].identity, opening ? nullptr : faults, how);
    });
  }
};

}  // namespace penstock::io
