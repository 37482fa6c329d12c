#pragma once

#include "decoder.hpp"

namespace penstock::io {

/// The decoder of a filter; null where this build has none, or the parameters are not known to it.
std::unique_ptr<decoder> make_decoder(const filter& f);

}  // namespace penstock::io
