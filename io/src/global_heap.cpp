#include "global_heap.hpp"

#include "ask_for_memory.hpp"
#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock::io {
namespace {

constexpr std::size_t window_bytes = std::size_t{16} << 10;
constexpr std::size_t alignment = 8;
constexpr std::size_t most_objects = std::numeric_limits<std::uint16_t>::max();
constexpr const char* advice = "the file is damaged; copy or write it again";

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

global_heap::global_heap(const byte_source& file, std::uint64_t file_bytes, const address_format& format,
                         fault_seam faults)
    : file_(file), file_bytes_(file_bytes), format_(format), faults_(std::move(faults)) {}

/// Bytes of the file that are there; valid until the next call.
std::span<const std::byte> global_heap::bytes_at(std::uint64_t offset, std::size_t count) {
  if (offset < window_start_ || offset - window_start_ > window_.size() ||
      window_.size() - (offset - window_start_) < count) {
    window_.resize(std::max<std::uint64_t>(count, std::min<std::uint64_t>(window_bytes, file_bytes_ - offset)));
    window_start_ = offset;
    try {
      file_.read(offset, window_, {});
    } catch (...) {
      window_.clear();
      throw;
    }
  }
  return std::span(window_).subspan(offset - window_start_, count);
}

/// The collection's size; 0 with why where there is none.
std::uint64_t global_heap::check_header(std::uint64_t address, collection& c) {
  constexpr std::size_t before_size = 8;  // signature, version, three bytes reserved
  const auto refuse = [&](std::string_view what) {
    c.why = fmt::format("a text lies in the global heap at address {}, {}: {}", address, what, advice);
    return std::uint64_t{0};
  };
  const std::size_t header = before_size + format_.length_bytes;
  if (__builtin_add_overflow(format_.base, address, &c.start) || c.start > file_bytes_ ||
      file_bytes_ - c.start < aligned(header))
    return refuse("which is past the file's end");
  const auto bytes = bytes_at(c.start, header);
  if (std::memcmp(bytes.data(), "GCOL", 4) != 0) return refuse("where there is none");
  if (bytes[4] != std::byte{1}) return refuse("which has another version than 1");
  const std::uint64_t size = decode_number(bytes.subspan(before_size));
  if (size < aligned(header) || size > file_bytes_ - c.start) return refuse(fmt::format("which claims {} bytes", size));
  return size;
}

/// Object 0, free space, is the last.
void global_heap::walk(collection& c, std::uint64_t bytes) {
  constexpr std::size_t before_size = 8;  // index, count of references, four bytes reserved
  const std::size_t header = aligned(before_size + format_.length_bytes);
  const auto refuse = [&](std::string_view what) {
    c.objects = {};
    c.why = fmt::format("a text lies in the global heap at byte {} of the file, {}: {}", c.start, what, advice);
  };
  for (std::uint64_t at = aligned(before_size + format_.length_bytes); at < bytes && bytes - at >= header;) {
    const auto from = bytes_at(c.start + at, before_size + format_.length_bytes);
    const auto index = static_cast<std::uint16_t>(decode_number(from.first(2)));
    const std::uint64_t size = decode_number(from.subspan(before_size));
    if (index == 0) break;
    at += header;
    if (size > bytes - at) return refuse(fmt::format("whose object {} claims {} bytes", index, size));
    if (c.objects.size() == most_objects) return refuse("which has more objects than have numbers");
    const std::uint64_t place = at / alignment;
    if (place > std::numeric_limits<std::uint32_t>::max()) return refuse("which is too large to be one");
    // What is longer is no text: none can refer to it.
    if (size <= std::numeric_limits<std::uint32_t>::max())
      c.objects.push_back(
          {.place = static_cast<std::uint32_t>(place), .bytes = static_cast<std::uint32_t>(size), .index = index});
    at += aligned(size);
  }
  std::ranges::sort(c.objects, {}, &object::index);
  if (std::ranges::adjacent_find(c.objects, {}, &object::index) != c.objects.end())
    return refuse("which has two objects of one number");
  ask_for_memory(faults_, memory_items::scratch, c.objects.size() * sizeof(object));
  c.objects.shrink_to_fit();
}

global_heap::collection& global_heap::open(std::uint64_t address) {
  if (const auto known = collections_.find(address); known != collections_.end()) return known->second;
  refused_ = {};
  try {
    const std::uint64_t bytes = check_header(address, refused_);
    if (bytes == 0) return refused_;
    auto& c = collections_.try_emplace(address, refused_).first->second;
    if (bytes > file_bytes_ - collected_bytes_) {
      c.why = fmt::format("a text lies in the global heap at address {}, which overlaps others: {}", address, advice);
      return c;
    }
    collected_bytes_ += bytes;
    try {
      walk(c, bytes);
    } catch (const failure& e) {
      if (!e.damaged) throw;
      c.objects = {};
      c.why = e.what();
    } catch (...) {
      collections_.erase(address);
      throw;
    }
    return c;
  } catch (const failure& e) {
    if (!e.damaged) throw;
    refused_.why = e.what();
    return refused_;
  }
}

global_heap::object* global_heap::find(const text_reference& where) {
  if (in_ != nullptr && where == last_) return found_;
  if (in_ == nullptr || in_ == &refused_ || where.address != last_.address) in_ = &open(where.address);
  last_ = where;
  found_ = nullptr;
  if (!in_->why.empty()) return nullptr;
  const auto at = std::ranges::lower_bound(in_->objects, where.index, {}, &object::index);
  if (at == in_->objects.end() || at->index != where.index || at->bytes != where.bytes) return nullptr;
  return found_ = &*at;
}

std::string global_heap::why() const {
  if (in_ != nullptr && !in_->why.empty()) return in_->why;
  return fmt::format("a text of {} bytes is object {} of the global heap at address {}, where there is no such one: {}",
                     last_.bytes, last_.index, last_.address, advice);
}

std::string global_heap::text() {
  const std::uint64_t offset = in_->start + std::uint64_t{found_->place} * alignment;
  std::string text(found_->bytes, '\0');
  if (const auto into = std::as_writable_bytes(std::span(text)); text.size() <= window_bytes)
    std::ranges::copy(bytes_at(offset, text.size()), into.begin());
  else
    file_.read(offset, into, {});
  text.resize(std::strlen(text.c_str()));
  return text;
}

}  // namespace penstock::io
