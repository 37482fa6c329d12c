#include "registry.hpp"

#include "filter_chain.hpp"

#include <penstock/config.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace penstock::io {
namespace {

/// Registered filters (HDF5's own, and the public registry of plugins).
struct registered {
  int id;
  const char* name;
  std::unique_ptr<decoder> (*make)(const filter&);
};

constexpr std::array known_filters {
#if PENSTOCK_HAS_LIBDEFLATE
  registered{1, "deflate", make_deflate},
#else
  registered{1, "deflate", nullptr},
#endif
      registered{2, "shuffle", make_shuffle}, registered{3, "fletcher32", make_fletcher32},
      registered{4, "szip", nullptr}, registered{5, "nbit", nullptr}, registered{6, "scaleoffset", nullptr},
      registered{305, "lzo", nullptr}, registered{307, "bzip2", nullptr}, registered{32000, "lzf", nullptr},
      registered{32001, "blosc", nullptr}, registered{32004, "lz4", nullptr}, registered{32008, "bitshuffle", nullptr},
      registered{32013, "zfp", nullptr}, registered{32015, "zstd", nullptr}, registered{32017, "sz", nullptr},
      registered{32026, "blosc2", nullptr},
};

const registered* find(int id) {
  const auto* found =
      std::find_if(known_filters.begin(), known_filters.end(), [id](const auto& f) { return f.id == id; });
  return found == known_filters.end() ? nullptr : found;
}

}  // namespace

std::unique_ptr<decoder> make_decoder(const filter& f) {
  const auto* known = find(f.id);
  return known && known->make ? known->make(f) : nullptr;
}

std::string filter_name(int id, const char* stored_name) {
  if (const auto* known = find(id)) return known->name;
  std::string name(stored_name);
  for (char& c : name)
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  return name.empty() ? "unknown" : name;
}

}  // namespace penstock::io
