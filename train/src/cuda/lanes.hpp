#pragma once

#include "../host/counting.hpp"

#include <nv/target>

#include <cstddef>
#include <cstdint>

namespace penstock::train {

/// One thread for a row: the host's, which may be named in device code but not called there.
struct one_lane {
  __host__ __device__ static constexpr std::size_t index() noexcept { return 0; }
  __host__ __device__ static constexpr std::size_t count() noexcept { return 1; }
  template <class T>
  __host__ __device__ static T sum(T value) noexcept {
    return value;
  }
  template <class T>
  __host__ __device__ static T largest(T value) noexcept {
    return value;
  }
  template <class T>
  __host__ __device__ static T smallest(T value) noexcept {
    return value;
  }
  __host__ __device__ static void join() noexcept {}
  __host__ __device__ static void note_first([[maybe_unused]] std::uint64_t& where,
                                             [[maybe_unused]] std::uint64_t row) noexcept {
    NV_IF_TARGET(NV_IS_HOST, (host::note_first(where, row);))
  }
  __host__ __device__ static void add_one([[maybe_unused]] std::uint64_t& where) noexcept {
    NV_IF_TARGET(NV_IS_HOST, (host::add_one(where);))
  }
};

namespace cuda {

/// The threads of a warp that share a row, as row-wise functors see them. Its functions may be named in host code,
/// since functors are written once, but not called. Sums have a fixed order.
struct warp_lanes {
  static constexpr unsigned size = 32;
  static constexpr unsigned all = 0xffffffffu;

  __host__ __device__ static std::size_t index() noexcept {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return threadIdx.x % size;), (return 0;))
  }
  __host__ __device__ static constexpr std::size_t count() noexcept { return size; }

  template <class T>
  __host__ __device__ static T sum(T value) noexcept {
    return combined(value, [](T a, T b) { return a + b; });
  }
  template <class T>
  __host__ __device__ static T largest(T value) noexcept {
    return combined(value, [](T a, T b) { return b > a ? b : a; });
  }
  template <class T>
  __host__ __device__ static T smallest(T value) noexcept {
    return combined(value, [](T a, T b) { return b < a ? b : a; });
  }
  __host__ __device__ static void join() noexcept { NV_IF_TARGET(NV_IS_DEVICE, (__syncwarp();)) }

  __host__ __device__ static void note_first([[maybe_unused]] std::uint64_t& where,
                                             [[maybe_unused]] std::uint64_t row) noexcept {
    NV_IF_TARGET(NV_IS_DEVICE, (atomicMin(reinterpret_cast<unsigned long long*>(&where), row);))
  }
  __host__ __device__ static void add_one([[maybe_unused]] std::uint64_t& where) noexcept {
    NV_IF_TARGET(NV_IS_DEVICE, (atomicAdd(reinterpret_cast<unsigned long long*>(&where), 1ull);))
  }

 private:
  template <class T, class Op>
  __host__ __device__ static T combined(T value, Op op) noexcept {
    NV_IF_TARGET(NV_IS_DEVICE, (for (unsigned distance = size / 2; distance > 0; distance /= 2) value =
                                    op(value, __shfl_xor_sync(all, value, distance));))
    return value;
  }
};

}  // namespace cuda

}  // namespace penstock::train
