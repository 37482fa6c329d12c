#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// Text for where only UTF-8 may stand, as in JSON: names in HDF5 files and of one's own may hold any bytes. A byte
/// that is no part of a character (RFC 3629) becomes \xNN, so that names stay apart; all else stays as it is.
std::string as_utf8(std::string_view text);

}  // namespace penstock
