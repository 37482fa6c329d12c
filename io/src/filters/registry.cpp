#include "registry.hpp"

#include "filter_chain.hpp"

#include <penstock/config.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace penstock::io {
namespace {

/// Registered filters (HDF5's own, and the public registry of plugins).
struct registered {
  int id;
  const char* name;
  std::unique_ptr<decoder> (*make)(const filter&);
};

using maker = std::unique_ptr<decoder> (*)(const filter&);
#if PENSTOCK_HAS_LIBDEFLATE
constexpr maker deflate = make_deflate;
#else
constexpr maker deflate = nullptr;
#endif
#if PENSTOCK_HAS_AEC
constexpr maker szip = make_szip;
#else
constexpr maker szip = nullptr;
#endif
#if PENSTOCK_HAS_BLOSC
constexpr maker blosc = make_blosc;
#else
constexpr maker blosc = nullptr;
#endif
#if PENSTOCK_HAS_LZ4
constexpr maker lz4 = make_lz4;
#else
constexpr maker lz4 = nullptr;
#endif
#if PENSTOCK_HAS_ZSTD
constexpr maker zstd = make_zstd;
#else
constexpr maker zstd = nullptr;
#endif

constexpr registered known_filters[] = {
    {1, "deflate", deflate},    {2, "shuffle", make_shuffle}, {3, "fletcher32", make_fletcher32},
    {4, "szip", szip},          {5, "nbit", nullptr},         {6, "scaleoffset", nullptr},
    {305, "lzo", nullptr},      {307, "bzip2", nullptr},      {32000, "lzf", make_lzf},
    {32001, "blosc", blosc},    {32004, "lz4", lz4},          {32008, "bitshuffle", make_bitshuffle},
    {32013, "zfp", nullptr},    {32015, "zstd", zstd},        {32017, "sz", nullptr},
    {32026, "blosc2", nullptr},
};

const registered* find(int id) {
  const auto* found =
      std::find_if(std::begin(known_filters), std::end(known_filters), [id](const auto& f) { return f.id == id; });
  return found == std::end(known_filters) ? nullptr : found;
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
