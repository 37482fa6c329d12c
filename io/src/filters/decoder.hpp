#pragma once

#include <penstock/io/dataset_info.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace penstock::io {

/// What one decoding at a time needs: memory for what lies between two filters, and the decoder libraries' own state.
class decode_workspace {
 public:
  /// `spare_bytes`: of each of `spares` (0 to 2) buffers.
  decode_workspace(std::size_t spares, std::size_t spare_bytes);
  ~decode_workspace();
  decode_workspace(decode_workspace&&) noexcept;
  decode_workspace& operator=(decode_workspace&&) noexcept;

  std::span<std::byte> spare(std::size_t n) const noexcept { return {buffers_[n].get(), spare_bytes_}; }
  std::size_t bytes() const noexcept;

  struct contexts;
  contexts& libraries() const noexcept { return *contexts_; }

 private:
  std::size_t spares_ = 0, spare_bytes_ = 0;
  std::array<std::unique_ptr<std::byte[]>, 2> buffers_;
  std::unique_ptr<contexts> contexts_;
};

/// Undoes one filter of a chunk. Thread-safe; what changes lies in the workspace.
/// Decoders check what they are given, since it is the file's: a failure says what is damaged.
class decoder {
 public:
  virtual ~decoder() = default;

  /// The stored size depends on the data: the decoder must be told how much it puts out.
  virtual bool compresses() const noexcept { return false; }
  /// Puts its output into memory of its own; otherwise its output is a part of its input.
  virtual bool writes() const noexcept { return true; }
  /// Bytes that it stores for `bytes`, where that does not depend on the data.
  virtual std::size_t stored_bytes(std::size_t bytes) const noexcept { return bytes; }
  /// Bytes that come out of `stored` bytes, where that does not depend on the data.
  virtual std::size_t decoded_bytes(std::size_t stored) const noexcept { return stored; }

  /// Gives the decoded bytes: exactly `out` where it writes, else a part of `in`. Throws failure on damage, and
  /// not_decodable on what libhdf5 understands and this decoder does not.
  virtual std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                            decode_workspace& workspace) const = 0;
};

/// Makers, one per filter. They return null where the filter's parameters are not known to them.
std::unique_ptr<decoder> make_deflate(const filter& f);
std::unique_ptr<decoder> make_shuffle(const filter& f);
std::unique_ptr<decoder> make_fletcher32(const filter& f);

}  // namespace penstock::io
