#pragma once

#include <utility>

namespace penstock {

/// Owner of one native handle (a CUDA stream, an HDF5 identifier, a descriptor). Move-only; a moved-from handle is
/// empty. `Traits` gives `native_type`, `static native_type empty()` and `static void release(native_type) noexcept`.
template <class Traits>
class handle {
 public:
  using native_type = typename Traits::native_type;

  handle() noexcept = default;
  explicit handle(native_type native) noexcept : native_(native) {}
  handle(handle&& other) noexcept : native_(other.release()) {}
  handle& operator=(handle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~handle() { reset(); }

  native_type native() const noexcept { return native_; }
  explicit operator bool() const noexcept { return native_ != Traits::empty(); }

  /// Gives the native handle up; the caller owns it.
  [[nodiscard]] native_type release() noexcept { return std::exchange(native_, Traits::empty()); }

  /// Releases what is held and takes `native` in its place.
  void reset(native_type native = Traits::empty()) noexcept {
    if (native_ != Traits::empty()) Traits::release(native_);
    native_ = native;
  }

 private:
  native_type native_ = Traits::empty();
};

}  // namespace penstock
