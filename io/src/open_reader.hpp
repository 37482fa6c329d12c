#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

#include <memory>

namespace penstock::io {

/// Makes the reader that the description asks for. What turns out not to be readable directly is read through libhdf5:
/// `info` is told. `file` and `dataset` are open; `number` names the dataset in `world`. Throws failure.
std::unique_ptr<dataset_reader> open_reader(read_world& world, std::size_t file_number, std::size_t number, hid_t file,
                                            hid_t dataset, const shared_description& description, dataset_info& info);

}  // namespace penstock::io
