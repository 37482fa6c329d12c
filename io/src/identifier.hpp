#pragma once

#include "library.hpp"

#include <penstock/handle.hpp>

namespace penstock::io {

template <herr_t (*Close)(hid_t)>
struct identifier_traits {
  using native_type = hid_t;
  static hid_t empty() noexcept { return -1; }
  static void release(hid_t id) noexcept {
    const library_guard guard;
    Close(id);
  }
};

/// Owners of libhdf5's identifiers; closing takes the library guard.
using file_id = handle<identifier_traits<H5Fclose>>;
using group_id = handle<identifier_traits<H5Gclose>>;
using object_id = handle<identifier_traits<H5Oclose>>;
using attribute_id = handle<identifier_traits<H5Aclose>>;
using dataset_id = handle<identifier_traits<H5Dclose>>;
using type_id = handle<identifier_traits<H5Tclose>>;
using space_id = handle<identifier_traits<H5Sclose>>;
using property_id = handle<identifier_traits<H5Pclose>>;

}  // namespace penstock::io
