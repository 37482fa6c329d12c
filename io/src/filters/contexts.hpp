#pragma once

#include "decoder.hpp"

#include <penstock/config.hpp>
#include <penstock/handle.hpp>

#if PENSTOCK_HAS_LIBDEFLATE
#include <libdeflate.h>
#endif
#if PENSTOCK_HAS_ZSTD
#include <zstd.h>
#endif

#include <new>

namespace penstock::io {

#if PENSTOCK_HAS_LIBDEFLATE
struct inflater_traits {
  using native_type = libdeflate_decompressor*;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type d) noexcept { libdeflate_free_decompressor(d); }
};
#endif

#if PENSTOCK_HAS_ZSTD
struct zstd_traits {
  using native_type = ZSTD_DCtx*;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type d) noexcept { ZSTD_freeDCtx(d); }
};
#endif

/// The libraries give null where there is no memory.
template <class T>
T* allocated(T* state) {
  if (state == nullptr) throw std::bad_alloc();
  return state;
}

/// State of the decoder libraries that is dear to make: made once per workspace.
struct decode_workspace::contexts {
#if PENSTOCK_HAS_LIBDEFLATE
  handle<inflater_traits> inflater{allocated(libdeflate_alloc_decompressor())};
#endif
#if PENSTOCK_HAS_ZSTD
  handle<zstd_traits> unzstd{allocated(ZSTD_createDCtx())};
#endif
};

}  // namespace penstock::io
