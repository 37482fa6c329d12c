#include "describe.hpp"

#include "box.hpp"
#include "external_bytes.hpp"
#include "filters/filter_chain.hpp"
#include "library_prefixes.hpp"
#include "printable.hpp"
#include "read_driver.hpp"
#include "source_files.hpp"
#include "text_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace penstock::io {
namespace {

constexpr std::uint64_t largest_message = 64 << 10;  // what an object's header can hold at once

void describe_space(dataset_description& d, hid_t dataset) {
  const space_id space(checked(H5Dget_space(dataset), "its shape cannot be read"));
  d.null = H5Sget_simple_extent_type(space.native()) == H5S_NULL;
  if (d.null) return;
  d.rank = static_cast<std::size_t>(checked(H5Sget_simple_extent_ndims(space.native()), "its rank cannot be read"));
  if (d.rank > max_rank) throw failure(fmt::format("it has {} axes; HDF5 allows {}", d.rank, max_rank));
  d.info.shape.resize(d.rank);
  if (d.rank > 0) {
    std::array<hsize_t, max_rank> extents{};
    checked(H5Sget_simple_extent_dims(space.native(), extents.data(), nullptr), "its shape cannot be read");
    std::copy_n(extents.begin(), d.rank, d.info.shape.begin());
  }
  std::uint64_t bytes = std::max(d.value.bytes, d.value.stored_bytes);
  bool empty = std::find(d.info.shape.begin(), d.info.shape.end(), 0u) != d.info.shape.end();
  for (const auto extent : d.info.shape)
    if (!empty && __builtin_mul_overflow(bytes, extent, &bytes))
      throw failure("its shape holds more bytes than can be addressed; the header is damaged");
}

/// libhdf5 gives zeros for what external files do not hold, without a word.
void describe_external(dataset_description& d, hid_t dataset, hid_t creation) {
  const std::uint64_t wanted = d.values() * d.value.stored_bytes;
  const auto there = external_bytes_there(creation, d.external_files, file_name_of(dataset), wanted);
  if (there == wanted) return;
  d.info.stored_bytes = there;
  d.external_shortage =
      fmt::format("its external files hold {} of {} bytes, and the others read as zeros", there, wanted);
}

void describe_layout(dataset_description& d, hid_t dataset, hid_t creation) {
  switch (H5Pget_layout(creation)) {
    case H5D_COMPACT: d.info.layout = layout::compact; break;
    case H5D_CONTIGUOUS: d.info.layout = layout::contiguous; break;
    case H5D_CHUNKED: d.info.layout = layout::chunked; break;
    case H5D_VIRTUAL: d.info.layout = layout::virtual_dataset; break;
    default: throw failure("its layout cannot be understood", 0, library_messages());
  }
  take_driver_error();
  d.info.stored_bytes = H5Dget_storage_size(dataset);  // 0 where it fails, too
  if (const int system = d.info.stored_bytes == 0 ? take_driver_error() : 0; !is_absence(system)) {
    const auto messages = library_messages();
    throw failure(why_unread(system, messages), system, messages);
  }
  if (d.info.layout == layout::contiguous) {
    d.external_files = static_cast<std::size_t>(std::max(0, H5Pget_external_count(creation)));
    if (d.external_files > 0) describe_external(d, dataset, creation);
    // Where nothing is stored, HDF5 1.10 adds the user block to "no address".
    if (d.external_files == 0 && d.info.stored_bytes > 0)
      if (const haddr_t offset = H5Dget_offset(dataset); offset != HADDR_UNDEF) d.offset = offset;
  }
  if (d.info.layout == layout::compact && d.values() * d.value.stored_bytes > largest_message)
    throw failure("it is compact, and its shape holds more than 64 KiB; the header is damaged");
  if (d.info.layout != layout::chunked) return;
  std::array<hsize_t, max_rank> extents{};
  const int rank =
      checked(H5Pget_chunk(creation, static_cast<int>(max_rank), extents.data()), "its chunk shape cannot be read");
  if (static_cast<std::size_t>(rank) != d.rank)
    throw failure("its chunks have another rank than its shape; the header is damaged");
  d.info.chunk_shape.assign(extents.begin(), extents.begin() + rank);
  if (std::find(d.info.chunk_shape.begin(), d.info.chunk_shape.end(), 0u) != d.info.chunk_shape.end())
    throw failure("its chunks have an extent of 0; the header is damaged");
  unsigned options = 0;
  if (H5Pget_chunk_opts(creation, &options) >= 0)
    d.partial_chunks_unfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
}

void describe_filters(dataset_description& d, hid_t creation) {
  const int count = checked(H5Pget_nfilters(creation), "its filters cannot be read");
  for (int n = 0; n < count; ++n) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    // Asked twice: the number of values is the file's to choose.
    checked(H5Pget_filter2(creation, static_cast<unsigned>(n), &flags, &values, nullptr, 0, nullptr, &config),
            "its filters cannot be read");
    filter f;
    f.values.resize(values);
    f.id = checked(H5Pget_filter2(creation, static_cast<unsigned>(n), &flags, &values, f.values.data(), name.size(),
                                  name.data(), &config),
                   "its filters cannot be read");
    name.back() = '\0';
    f.name = filter_name(f.id, name.data());
    // libaec, through which libhdf5 reads szip too, writes past its own memory then (1.0.6).
    if (f.id == H5Z_FILTER_SZIP && f.values.size() > 1 && f.values[1] % 2 != 0)
      throw failure(
          fmt::format("its szip blocks have {} samples, where szip allows even numbers alone; the header is "
                      "damaged",
                      f.values[1]));
    d.info.filters.push_back(std::move(f));
  }
}

/// libhdf5 gives what the file says, be it a value of the enumeration or not.
bool is_never(const H5D_fill_time_t& time) noexcept {
  std::underlying_type_t<H5D_fill_time_t> number{};
  std::memcpy(&number, &time, sizeof number);
  return number == H5D_FILL_TIME_NEVER;
}

/// A reference that is none: libhdf5 hands the text out, not what is stored for it.
void describe_text_fill(dataset_description& d, hid_t creation, hid_t memory) {
  constexpr std::string_view stand_in = "\xffPenstock's fill";
  char* text = nullptr;
  checked(H5Pget_fill_value(creation, memory, &text), "its fill value cannot be read");
  if (text != nullptr) d.fill_text = text;
  H5free_memory(text);
  if (d.fill_text.empty()) return;
  fill_value::bytes value(d.value.bytes);
  std::transform(stand_in.begin(),
                 stand_in.begin() + static_cast<std::ptrdiff_t>(std::min(stand_in.size(), value.size())), value.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  d.fill_value = fill_value(std::move(value));
}

fill_value read_fill_value(const dataset_description& d, hid_t creation) {
  if (d.value.stored_bytes > largest_message)
    throw failure("it has a fill value, and its values are longer than 64 KiB; the header is damaged");
  fill_value::bytes value(d.value.bytes);
  checked(H5Pget_fill_value(creation, d.value.memory.native(), value.data()), "its fill value cannot be read");
  return fill_value(std::move(value));
}

/// `texts`: the type of memory of texts that `d` describes as references; -1 where it does not.
void describe_fill(dataset_description& d, hid_t creation, hid_t texts) {
  if (!d.value.element || d.value.labels) return;
  d.fill_value = fill_value(d.value.bytes);
  H5D_fill_value_t status = H5D_FILL_VALUE_DEFAULT;
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  H5Pget_fill_time(creation, &time);
  if (H5Pfill_value_defined(creation, &status) < 0) status = H5D_FILL_VALUE_DEFAULT;
  if (is_never(time))
    d.fill = fill_kind::zero;
  else if (status == H5D_FILL_VALUE_UNDEFINED)
    d.fill = fill_kind::undefined;
  else if (status == H5D_FILL_VALUE_USER_DEFINED && texts >= 0)
    describe_text_fill(d, creation, texts);
  else if (status == H5D_FILL_VALUE_USER_DEFINED)
    d.fill_value = read_fill_value(d, creation);
}

void choose(dataset_description& d, access how, std::string reason) {
  d.info.access = how;
  d.info.reason = std::move(reason);
}

void choose_virtual(dataset_description& d) {
  if (auto why = why_sources_are_elsewhere(); !why.empty()) return choose(d, access::locked, std::move(why));
  choose(d, access::direct, "virtual, read from its sources");
}

void choose_external(dataset_description& d) {
  if (auto why = why_external_files_are_elsewhere(); !why.empty()) return choose(d, access::locked, std::move(why));
  choose(d, access::direct, "contiguous, in external files");
}

void choose_access(dataset_description& d) {
  if (d.null) return choose(d, access::staged, "it holds no value");
  if (!d.value.element) return choose(d, access::locked, d.value.refusal);
  if (d.value.labels) return choose(d, access::staged, "texts of variable length, as class codes");
  if (d.values() == 0) return choose(d, access::direct, "it holds no rows");
  if (d.info.layout == layout::compact) return choose(d, access::staged, "compact: it lies in the object's header");
  if (!d.value.conversion.empty()) return choose(d, access::locked, d.value.conversion);
  if (d.info.layout == layout::virtual_dataset) return choose_virtual(d);
  if (d.external_files > 0) return choose_external(d);
  if (d.fill == fill_kind::undefined && d.info.stored_bytes == 0)
    return choose(d, access::locked, "nothing is stored and it has no fill value");
  if (d.info.layout == layout::contiguous)
    return choose(d, access::direct, d.offset ? "contiguous" : "nothing is stored: fill values");
  if (auto why = why_not_decodable(d.info.filters, chunk_bytes(d)); !why.empty()) return choose(d, access::locked, why);
  choose(d, access::direct, d.info.filters.empty() ? "chunked, no filter" : "chunked, its filters are decoded here");
}

}  // namespace

std::uint64_t dataset_description::values() const noexcept {
  if (null) return 0;
  std::uint64_t count = 1;
  for (const auto extent : info.shape) count *= extent;
  return count;
}

std::uint64_t chunk_bytes(const dataset_description& d) {
  std::uint64_t bytes = d.value.stored_bytes;
  for (const auto extent : d.info.chunk_shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) throw failure("its chunks are too large; the header is damaged");
  return bytes;
}

std::uint64_t decoded_rows(const dataset_description& d, std::size_t row_axis) noexcept {
  if (d.info.layout != layout::chunked || d.info.filters.empty() || d.value.labels || d.values() == 0) return 0;
  const auto rows = d.info.chunk_shape[row_axis];
  return rows > 1 ? rows : 0;
}

std::string shortage_of_source(const open_dataset& from, const dataset_description& source) {
  return fmt::format("of its source {}:{}, {}", file_name_of(from.id.native()).string(), source.info.path,
                     source.external_shortage);
}

void tell_shortage(dataset_info& info, const std::string& shortage) {
  if (!shortage.empty()) info.reason += "; " + shortage;
  info.reason = printable(std::move(info.reason));
}

dataset_description describe_dataset(const open_dataset& from, text_form texts) {
  const library_guard guard;
  const hid_t dataset = from.id.native();
  dataset_description d;
  d.info.path = from.path;
  d.object = from.object;
  const type_id stored(checked(H5Dget_type(dataset), "its datatype cannot be read"));
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  text_storage storage{.reference_bytes = address_format_of(file.native()).reference_bytes(), .as_references = false};
  const auto describe = [&] {
    return from.member.empty() ? describe_type(stored.native(), storage)
                               : describe_member(stored.native(), from.member, storage);
  };
  value_type labels;
  if (texts == text_form::references) {
    labels = describe();
    storage.as_references = true;
  }
  d.value = describe();
  if (!d.value.labels) d.info.element = d.value.element;
  d.info.type_text = d.value.text;
  d.info.unreadable = d.value.refusal;
  const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
  describe_space(d, dataset);
  if (d.null) d.info.unreadable = "its dataspace is null: it holds no value";
  describe_layout(d, dataset, creation.native());
  describe_filters(d, creation.native());
  describe_fill(d, creation.native(), labels.labels ? labels.memory.native() : -1);
  choose_access(d);
  return d;
}

}  // namespace penstock::io
