#pragma once

#include <penstock/gpu/stream.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace penstock::pipeline {

/// Where a row of a field is stored: the number of its dataset among the field's segments, and its number there.
struct row_identity {
  std::uint64_t segment = 0;
  std::uint64_t index = 0;
  friend bool operator==(const row_identity&, const row_identity&) = default;
};

class batch_lease;  // private: what gives the rows back

/// One field of a batch: rows() rows, one after another, in the device's memory.
struct field_view {
  std::string_view name;
  const std::byte* data = nullptr;
  type element = type::float32;
  std::size_t row_bytes = 0;
  const std::vector<std::uint64_t>* row_shape = nullptr;
};

/// The rows that one step of the consumer sees; a lease on them. stream() may use the rows at once: the work that fills
/// them comes before in its order. They are given back when the batch is released (destroyed, assigned, or passed by
/// the loop), in the order of stream(): what was issued to it until then still sees them. Movable: to hold a batch
/// longer, move it away.
class batch {
 public:
  batch() noexcept;
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  ~batch();

  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Number of this batch in its epoch.
  std::uint64_t index() const noexcept { return index_; }
  /// Rows in memory, padding included.
  std::size_t rows() const noexcept { return rows_; }
  /// Rows of the source; the rest are zeros.
  std::size_t valid_rows() const noexcept { return valid_rows_; }
  /// rows() bytes on the device: 1 for a valid row, 0 for padding. Null where batches are not padded (last_batch::pad).
  const std::uint8_t* mask() const noexcept { return mask_; }
  /// The field that says which rows are intact, where the source leaves damaged ones out (damage_options); empty where
  /// it does not.
  std::string_view damage_mask() const noexcept;
  gpu::stream_ref stream() const noexcept { return stream_; }  ///< a pipeline's own one ends with the pipeline

  /// The rows of a field. Throws std::invalid_argument that names the fields there are, or the type it has; of a batch
  /// that was released or moved away, field and batch. So do fields(), row_ids(), row_identities() and used_on().
  template <class T>
  const T* field(std::string_view name) const {
    return reinterpret_cast<const T*>(typed_view(name, type_of<T>).data);
  }
  field_view view(std::string_view name) const;
  std::vector<field_view> fields() const;

  /// Row numbers in the source, of the valid rows; computed on the host when asked.
  std::vector<std::uint64_t> row_ids() const;
  /// The same as places in a field's segments. Throws std::invalid_argument for a field that the source does not have.
  std::vector<row_identity> row_identities(std::string_view field) const;

  /// Says that `other` uses the rows too: it waits for them now, and the rows return only when its work issued until
  /// the release is done. Throws std::invalid_argument for a stream of another device.
  void used_on(gpu::stream_ref other);
  /// Gives the rows back now.
  void release();
  explicit operator bool() const noexcept { return lease_ != nullptr; }

 private:
  friend class batch_lease;
  field_view typed_view(std::string_view name, type element) const;

  std::uint64_t epoch_ = 0;
  std::uint64_t index_ = 0;
  std::size_t rows_ = 0;
  std::size_t valid_rows_ = 0;
  const std::uint8_t* mask_ = nullptr;
  gpu::stream_ref stream_;
  std::uint64_t ticket_ = 0;
  std::shared_ptr<batch_lease> lease_;
};

}  // namespace penstock::pipeline
