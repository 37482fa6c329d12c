#pragma once

#include "fill_value.hpp"
#include "value_type.hpp"

#include <penstock/io/dataset_info.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::io {

/// What values that were never written read as.
enum class fill_kind {
  value,      ///< the fill value
  zero,       ///< zeros: libhdf5 leaves the reader's memory as it is
  undefined,  ///< libhdf5 refuses where nothing at all is stored
};

/// A dataset as the readers need to know it.
struct dataset_description {
  dataset_info info;
  std::string object;  ///< path of the dataset itself: info.path without [MEMBER]
  value_type value;
  std::size_t rank = 0;                 ///< of the dataspace; info.shape has its extents
  bool null = false;                    ///< no dataspace: no value at all
  std::optional<std::uint64_t> offset;  ///< of contiguous data in the file, user block included
  std::size_t external_files = 0;
  std::string external_shortage;  ///< where they hold fewer bytes than the values have: that, for people
  fill_kind fill = fill_kind::value;
  io::fill_value fill_value;
  std::string fill_text;                   ///< of references to texts: where it is not empty, fill_value stands for it
  bool partial_chunks_unfiltered = false;  ///< H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS

  std::uint64_t values() const noexcept;  ///< product of the extents; 1 for a scalar
};

/// An open dataset, or a member of its compounds.
struct open_dataset {
  /// Opens the dataset at `path` in the file, or where there is none and `path` is DATASET[MEMBER], that. Throws
  /// failure that says what is there instead.
  open_dataset(hid_t file, const std::string& path);

  dataset_id id;
  std::string path;    ///< as it was given
  std::string object;  ///< of the dataset itself
  std::string member;  ///< empty for the whole value
};

/// How texts of variable length are described.
enum class text_form {
  codes,       ///< as labels
  references,  ///< as the bytes that are stored for them: see text_reference.hpp
};

/// The external_shortage of a virtual dataset's source, as it is said of the virtual one.
std::string shortage_of_source(const open_dataset& dataset, const dataset_description& source);
/// Adds a shortage, if there is one, to the reason of the dataset that a caller asked for, and makes that one line.
void tell_shortage(dataset_info& info, const std::string& shortage);

/// Describes the open dataset and chooses how it is read. Throws failure.
dataset_description describe_dataset(const open_dataset& dataset, text_form texts = text_form::codes);

/// Rows of a chunk along `row_axis` where it goes through filters, and is decoded as a whole. 0 where it is one row.
std::uint64_t decoded_rows(const dataset_description& d, std::size_t row_axis) noexcept;

/// Described once, known to all who read it.
using shared_description = std::shared_ptr<const dataset_description>;

/// Bytes of one chunk without filters. Throws failure where the header's numbers overflow.
std::uint64_t chunk_bytes(const dataset_description& d);

}  // namespace penstock::io
