#pragma once

#include <penstock/gpu/stream.hpp>
#include <penstock/pipeline/batch.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace penstock::pipeline {

/// The binary interface of DLPack 1.1 (https://dmlc.github.io/dlpack, dlpack.h), with Penstock's names: the same
/// layout, so that a pointer may be cast to DLManagedTensor* or DLManagedTensorVersioned*.
namespace dlpack {

inline constexpr std::int32_t cpu = 1, cuda = 2;                                            // DLDeviceType
inline constexpr std::uint8_t integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4;  // DLDataTypeCode
inline constexpr std::uint64_t read_only = 1;                                               // a bit of the flags

struct device {
  std::int32_t type = cpu;
  std::int32_t ordinal = 0;
};
struct data_type {
  std::uint8_t code = floating;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};
struct tensor {
  void* data = nullptr;
  dlpack::device device;
  std::int32_t dimensions = 0;
  data_type element;
  std::int64_t* shape = nullptr;    ///< elements
  std::int64_t* strides = nullptr;  ///< elements
  std::uint64_t byte_offset = 0;
};
/// Before DLPack 1.0: capsule "dltensor".
struct managed_tensor {
  dlpack::tensor tensor;
  void* owner = nullptr;
  void (*deleter)(managed_tensor*) = nullptr;
};
/// Since DLPack 1.0: capsule "dltensor_versioned".
struct managed_tensor_versioned {
  std::uint32_t major = 1;
  std::uint32_t minor = 1;
  void* owner = nullptr;
  void (*deleter)(managed_tensor_versioned*) = nullptr;
  std::uint64_t flags = 0;
  dlpack::tensor tensor;
};

struct call_deleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    managed->deleter(managed);
  }
};
/// Owns what is not handed over yet; release() hands it over.
using managed_tensor_ptr = std::unique_ptr<managed_tensor, call_deleter>;
using managed_tensor_versioned_ptr = std::unique_ptr<managed_tensor_versioned, call_deleter>;

device device_of(gpu::device d) noexcept;
data_type data_type_of(type element) noexcept;

}  // namespace dlpack

/// A batch whose rows are lent on as DLPack tensors, without a copy. Its copies and its tensors share one lease: the
/// rows are given back when the last of them is gone, on whichever thread that is. A tensor that is kept counts as a
/// batch that is held.
///
/// Streams. A tensor is exported for the stream that will use it: that stream waits for the work issued to
/// batch.stream() until now, and the rows are given back in the order of both. Without a consumer the tensor must be
/// used on batch.stream(), or on a stream that waits for it and that it waits for; on the host there is nothing to
/// order. Work on further streams: used_on() first. Streams must live until the rows are given back, batch.stream()
/// until another run has begun, or the pipeline is gone (consume_options::stream). The per-thread default stream
/// (cudaStreamPerThread, DLPack's 2) is another one on each thread: tensors for it, and all shares of their batch, are
/// let go on the thread that took them. Thread-safe, as copies of a std::shared_ptr are.
class shared_batch {
 public:
  shared_batch() = default;
  /// Of the end of a run, which is no batch, there is nothing to share either.
  explicit shared_batch(batch rows) : rows_(rows ? std::make_shared<batch>(std::move(rows)) : nullptr) {}
  /// A batch that is shared already; its deleter decides how the rows are given back.
  explicit shared_batch(std::shared_ptr<batch> rows) noexcept : rows_(std::move(rows)) {}

  /// The batch; throws std::invalid_argument when it was let go, or where there never was one.
  const batch& rows() const;
  explicit operator bool() const noexcept { return rows_ != nullptr; }
  /// Lets go of this share.
  void reset() noexcept { rows_.reset(); }
  /// As batch::used_on, for all shares.
  void used_on(gpu::stream_ref other) const;

  /// A field: [rows, row shape...], C order, on kDLCPU or kDLCUDA. Whoever holds it may write to it. Throws
  /// std::invalid_argument for a field that there is not, and for a consumer on another device.
  dlpack::managed_tensor_ptr tensor(std::string_view field, std::optional<gpu::stream_ref> consumer = {}) const;
  dlpack::managed_tensor_versioned_ptr tensor_versioned(std::string_view field,
                                                        std::optional<gpu::stream_ref> consumer = {}) const;
  /// The mask of a padded batch: uint8 [rows], read-only (the flag says so; older consumers must know). Throws
  /// std::invalid_argument where there is none.
  dlpack::managed_tensor_ptr mask_tensor(std::optional<gpu::stream_ref> consumer = {}) const;
  dlpack::managed_tensor_versioned_ptr mask_tensor_versioned(std::optional<gpu::stream_ref> consumer = {}) const;

 private:
  void order_for(const std::optional<gpu::stream_ref>& consumer) const;

  std::shared_ptr<batch> rows_;
};

}  // namespace penstock::pipeline
