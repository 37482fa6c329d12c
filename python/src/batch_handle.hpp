#pragma once

#include <nanobind/nanobind.h>

#include <penstock/pipeline/dlpack.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::python {

/// Python has streams as numbers; 1 is CUDA's other name for its legacy default stream.
CUstream_st* native_stream(std::uintptr_t handle) noexcept;

/// The loop's share of a batch. Its tensors have shares of their own. In a forked child nothing is given back: the
/// threads that would take it are the parent's.
class batch_handle {
 public:
  /// `epoch`: as the loop calls it.
  batch_handle(pipeline::batch rows, std::uint64_t epoch);

  std::uint64_t index() const noexcept { return index_; }
  std::size_t rows() const noexcept { return rows_; }
  std::size_t valid_rows() const noexcept { return valid_rows_; }
  bool has_mask() const noexcept { return has_mask_; }

  /// Gives the loop's share back.
  void release() noexcept { share_.reset(); }
  bool is_released() const noexcept { return !share_; }
  /// Row numbers as native uint64.
  nanobind::bytes row_ids() const;
  /// Pairs of native uint64: (segment, row of it) of a field.
  nanobind::bytes row_identities(const std::string& field) const;
  void used_on(std::uintptr_t stream) const;
  /// CUDA's handle of the stream that the rows are for; none on the host.
  std::optional<std::uintptr_t> stream() const;
  /// A DLPack capsule of a field; of the mask where there is no name. `stream`: CUDA's handle of the stream that will
  /// use it; none: the batch's own.
  nanobind::object capsule(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                           bool versioned) const;
  /// The same rows for XLA, whose programs for GPUs take what begins at a multiple of 16 bytes: in one dimension, with
  /// the elements_before() from the last such address on; what these hold may change at any time.
  nanobind::object flat_capsule(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                                bool versioned) const;
  std::size_t elements_before(const std::optional<std::string>& field) const;

 private:
  /// Throws given_back, where it was, of what is asked for.
  const pipeline::shared_batch& share(const char* what) const;
  void refuse_late_use(const std::string& what) const;
  gpu::stream_ref stream_of(std::uintptr_t handle) const;
  /// A capsule of what `change` makes of the tensor.
  template <class Change>
  nanobind::object capsule_of(const std::optional<std::string>& field, std::optional<std::uintptr_t> stream,
                              bool versioned, Change change) const;

  pipeline::shared_batch share_;
  std::uint64_t epoch_, index_;
  std::size_t rows_, valid_rows_;
  bool has_mask_;
};

void bind_batch(nanobind::module_& m);

}  // namespace penstock::python
