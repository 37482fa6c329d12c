#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

#include <memory>

namespace penstock::io {

/// An open file that readers are made for.
struct source_file {
  std::size_t number = 0;  ///< in the world: where the data are
  std::size_t through =
      0;          ///< the file through which the dataset's path leads; another one where that is an external link
  hid_t id = -1;  ///< of the first
};

/// The file in which an open dataset lies: a link may have led out of `from`. `linked` then holds that file open.
source_file file_of(read_world& world, const open_dataset& dataset, const source_file& from, file_id& linked);

/// Throws unreadable where one of the dataset's external files is there and no regular file.
void check_external_files(const read_world& world, const source_file& file, const open_dataset& dataset,
                          std::size_t files);

/// Makes the reader that the description asks for. What turns out not to be readable directly is read through libhdf5:
/// `info` is told. Throws failure.
std::unique_ptr<dataset_reader> open_reader(read_world& world, const source_file& file, const open_dataset& dataset,
                                            const shared_description& description, dataset_info& info,
                                            std::size_t depth = 0);

/// The same for a virtual dataset with fixed mappings; null, with `why`, where libhdf5 must read it. Tells `info` of
/// sources that are absent.
std::unique_ptr<dataset_reader> open_virtual(read_world& world, const source_file& file, const open_dataset& dataset,
                                             const shared_description& description, dataset_info& info,
                                             std::string& why, std::size_t depth);

/// Whether `reader` gives for the first values of the dataset what libhdf5 gives; true where libhdf5 gives nothing, and
/// where a single value has more than 16 MiB.
bool begins_like_library(const dataset_reader& reader, hid_t dataset, const dataset_description& d);

}  // namespace penstock::io
