#pragma once

#include <penstock/io/dataset_info.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace penstock::io {

/// Sizes of a workspace.
struct workspace_sizes {
  std::size_t spares = 0;       ///< buffers for what lies between two filters: 0 to 2
  std::size_t spare_bytes = 0;  ///< of each
  std::size_t extra_bytes = 0;  ///< a decoder's own

  std::size_t bytes() const noexcept { return spares * spare_bytes + extra_bytes; }
};

/// What one decoding at a time needs: memory between filters, and the decoder libraries' own state.
class decode_workspace {
 public:
  explicit decode_workspace(const workspace_sizes& sizes);
  ~decode_workspace();
  decode_workspace(decode_workspace&&) noexcept;
  decode_workspace& operator=(decode_workspace&&) noexcept;

  /// Empty where there is none.
  std::span<std::byte> spare(std::size_t n) const noexcept {
    return {spares_[n].get(), n < sizes_.spares ? sizes_.spare_bytes : 0};
  }
  std::span<std::byte> extra() const noexcept { return {extra_.get(), sizes_.extra_bytes}; }

  struct contexts;
  contexts& libraries() const noexcept { return *contexts_; }

 private:
  workspace_sizes sizes_;
  std::array<std::unique_ptr<std::byte[]>, 2> spares_;
  std::unique_ptr<std::byte[]> extra_;
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

  /// Bytes of workspace.extra() that it needs to put out `decoded` bytes.
  virtual std::size_t extra_bytes(std::size_t decoded) const noexcept {
    (void)decoded;
    return 0;
  }

  /// Gives the decoded bytes: exactly `out` where it writes, else a part of `in`. Throws failure on damage, and
  /// not_decodable on what libhdf5 understands and this decoder does not.
  virtual std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                            decode_workspace& workspace) const = 0;

  /// For input whose output is as long as it says itself: writes at most `out`, and gives how many bytes; nothing where
  /// there are more. Throws damage. Only for decoders that write.
  virtual std::optional<std::size_t> decode_at_most(std::span<const std::byte> in, std::span<std::byte> out,
                                                    decode_workspace& workspace) const {
    return decode(in, out.first(decoded_bytes(in.size())), workspace).size();
  }
};

/// Makers, one per filter. They return null where the filter's parameters are not known to them.
std::unique_ptr<decoder> make_deflate(const filter& f);
std::unique_ptr<decoder> make_shuffle(const filter& f);
std::unique_ptr<decoder> make_fletcher32(const filter& f);
std::unique_ptr<decoder> make_szip(const filter& f);
std::unique_ptr<decoder> make_lzf(const filter& f);
std::unique_ptr<decoder> make_blosc(const filter& f);
std::unique_ptr<decoder> make_lz4(const filter& f);
std::unique_ptr<decoder> make_bitshuffle(const filter& f);
std::unique_ptr<decoder> make_zstd(const filter& f);

}  // namespace penstock::io
