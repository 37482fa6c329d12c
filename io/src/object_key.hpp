#pragma once

#include "identifier.hpp"

#include <algorithm>
#include <array>

namespace penstock::io {

/// Tells the objects of one file apart, whatever names lead to them.
#if H5_VERSION_GE(1, 12, 0)
using object_key = std::array<unsigned char, sizeof(H5O_token_t)>;
#else
using object_key = haddr_t;
#endif

/// The key of an open object, and how many hard links lead to it; false where libhdf5 cannot say. Needs the guard.
inline bool identify(hid_t object, object_key& key, unsigned& links) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return false;
  std::copy_n(reinterpret_cast<const unsigned char*>(&info.token), key.size(), key.begin());
#else
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return false;
  key = info.addr;
#endif
  links = info.rc;
  return true;
}

}  // namespace penstock::io
