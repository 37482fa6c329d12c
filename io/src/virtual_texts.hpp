#pragma once

#include "open_reader.hpp"

#include <functional>

namespace penstock::io {

/// Calls `f` with each text of a virtual dataset, described by `d`, in C order; null where there is none. libhdf5 finds
/// the sources, and reads them: what refers to texts is looked at in all of them before it follows that. A source that
/// is not there gives fill values. Throws failure; damage, with the source's name, where one of its texts is damaged,
/// shown or not.
void read_virtual_texts(read_world& world, const source_file& file, const open_dataset& dataset,
                        const dataset_description& d, const std::function<void(const char*)>& f);

}  // namespace penstock::io
