#pragma once

#include <penstock/handle.hpp>

#include <hdf5.h>

namespace examples {

template <herr_t (*Close)(hid_t)>
struct hdf5_traits {
  using native_type = hid_t;
  static native_type empty() noexcept { return H5I_INVALID_HID; }
  static void release(native_type id) noexcept { Close(id); }
};

template <herr_t (*Close)(hid_t)>
using hdf5_handle = penstock::handle<hdf5_traits<Close>>;

/// The type in which a program would read values that are stored as `stored`: this machine's byte order, 16-bit floats
/// as they are (H5Tget_native_type would widen them), strings filled up with zeros.
hdf5_handle<H5Tclose> plain_type(hid_t stored);

}  // namespace examples
