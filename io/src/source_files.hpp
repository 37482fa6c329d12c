#pragma once

#include "identifier.hpp"
#include "raw_file.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace penstock::io {

/// The path by which the file of an open object was opened. Throws failure.
std::filesystem::path file_name_of(hid_t object);

/// The files of the sources of a virtual dataset, found where libhdf5 looks for them: as they are written where that is
/// absolute, in the folders that its environment names, beside the file of the virtual dataset, from the working
/// directory, beside what the file is a link to.
class source_finder {
 public:
  struct source {
    std::filesystem::path path;
    file_identity identity;
    hid_t file = -1;  ///< open until another one is found
  };

  /// `faults` is asked at open_file, and at read_file as long as a file is open.
  explicit source_finder(std::filesystem::path owner, fault_seam faults = {})
      : owner_(std::move(owner)), faults_(std::move(faults)) {}

  /// The file that is written so. Nothing where libhdf5 finds none, and gives fill values without a word: there is no
  /// such file, it may not be read, or it is no HDF5 file. Throws failure where the system fails otherwise, as at a
  /// file that is there (EIO), or for want of descriptors or memory, and unreadable where it is neither a file nor a
  /// folder.
  std::optional<source> find(const std::string& written);

 private:
  std::filesystem::path owner_;
  fault_seam faults_;
  std::string last_;
  file_id file_;
  std::optional<source> found_;
};

/// What opening looks at in the sources of a virtual dataset.
struct source_survey {
  std::vector<std::string> absent;  ///< FILE:DATASET
  std::size_t check_bytes = 0;      ///< of a half of check_memory, to look at the chunks of any of them
  std::size_t mapping_bytes = 0;    ///< of source_check
  std::string short_source;         ///< the first whose external files are short, for people; or empty
};

/// Surveys the sources of a virtual dataset. Absent are those that are not there: neither its own, nor those of sources
/// that are virtual themselves; those that %b numbers are as many as there are. Throws failure as source_finder does,
/// and where those have no end: libhdf5 would crash; and unreadable where what libhdf5 would open for one of them, the
/// file or an external file of its dataset, is there and no regular file: it may be a pipe, for whose writer libhdf5
/// would wait without end.
source_survey survey_sources(hid_t dataset, const fault_seam& faults = {});

/// row_reader::decoded_rows of a virtual dataset, by what the files of its sources say: for one that libhdf5 reads. 0
/// where its mappings are not fixed boxes. Throws failure as source_finder does.
std::uint64_t decoded_rows_of_sources(hid_t dataset, std::size_t row_axis, const fault_seam& faults = {});

/// Whether `name` leads to a dataset that opens. Throws failure where the system does not let it be read.
bool is_dataset(hid_t file, const std::string& name);

}  // namespace penstock::io
