#pragma once

#include <penstock/gpu/stream.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::pipeline {

/// A field that a transform puts out. A name that is there already is replaced.
struct field_shape {
  std::string name{};
  type element = type::float32;
  std::vector<std::uint64_t> row_shape{};
};

/// One field's rows in a block: rows() rows, one after another.
struct block_field {
  std::string_view name;
  type element = type::float32;
  std::size_t row_bytes = 0;
  std::byte* data = nullptr;
};

/// What a transform sees: some rows of one epoch, as many as travel together. Which rows share a block is not part of
/// the order: whatever is random in a transform must come from (seed, epoch, row id), so that every run gives the same
/// bits.
class block {
 public:
  block(std::uint64_t seed, std::uint64_t epoch, std::size_t rows, const std::uint64_t* row_ids,
        std::span<const block_field> inputs, std::span<const block_field> outputs, gpu::stream_ref stream)
      : seed_(seed),
        epoch_(epoch),
        rows_(rows),
        row_ids_(row_ids),
        inputs_(inputs),
        outputs_(outputs),
        stream_(stream) {}

  std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::size_t rows() const noexcept { return rows_; }
  /// rows() row numbers of the source; in device memory for a device transform.
  const std::uint64_t* row_ids() const noexcept { return row_ids_; }
  /// The stream on which a device transform must issue its work.
  gpu::stream_ref stream() const noexcept { return stream_; }

  /// The fields as they come in.
  std::span<const block_field> inputs() const noexcept { return inputs_; }
  /// The fields as they go out. A field that is not declared as an output is the same memory as its input.
  std::span<const block_field> outputs() const noexcept { return outputs_; }

  /// The rows of a field as they come in. Throws std::invalid_argument for another name or type.
  template <class T>
  const T* input(std::string_view name) const {
    return reinterpret_cast<const T*>(find(inputs_, name, type_of<T>).data);
  }
  /// Where the rows of a field go. Throws std::invalid_argument for another name or type.
  template <class T>
  T* output(std::string_view name) const {
    return reinterpret_cast<T*>(find(outputs_, name, type_of<T>).data);
  }

 private:
  static const block_field& find(std::span<const block_field> fields, std::string_view name, type element);

  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::size_t rows_;
  const std::uint64_t* row_ids_;
  std::span<const block_field> inputs_;
  std::span<const block_field> outputs_;
  gpu::stream_ref stream_;
};

/// A transform of blocks. With `outputs` empty it changes fields in place; with outputs, input and output memory differ
/// for those fields. Its memory is in the plan.
struct transform_options {
  std::string name = "transform";
  /// Host transforms: blocks at once; above 1, the function must be thread-safe. At most as many as there are readers
  /// at first (transport_options::threads) and processors, also where it waits: the plan's choices say so where that is
  /// less, and the report how many there are.
  std::size_t concurrency = 1;
  std::vector<field_shape> outputs{};
};

/// A host transform runs on Penstock's threads, on the stored type (in native byte order) before the copy; it may
/// throw, which ends the epoch. A device transform runs on one thread, issues work to block.stream() and must not wait
/// for it.
using transform_function = std::function<void(const block&)>;

}  // namespace penstock::pipeline
