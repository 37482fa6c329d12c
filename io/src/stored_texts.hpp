#pragma once

#include "global_heap.hpp"
#include "open_reader.hpp"
#include "raw_file.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace penstock::io {

/// Gets the texts of a dataset, each by its position in C order.
class text_sink {
 public:
  virtual ~text_sink() = default;
  /// Nothing, or an empty text, is stored.
  virtual void empty(std::uint64_t position) = 0;
  /// Nothing is stored, and the dataset has a fill value that is not empty.
  virtual void fill(std::uint64_t position, const std::string& text) = 0;
  /// heap.find() gave `object`, the same for all texts that refer to it; heap.text() gives it. May throw damage.
  virtual void stored(std::uint64_t position, global_heap::object& object, global_heap& heap) = 0;
  /// `count` texts from `position` on cannot be had, since what is stored is damaged.
  virtual void damaged(std::uint64_t position, std::uint64_t count, const std::string& why) = 0;
};

/// Texts of variable length of a dataset that is not virtual: what refers to them is read as rows of numbers are, past
/// damage, and followed by global_heap, never by libhdf5.
class stored_texts {
 public:
  /// `dataset`: described as text_form::references. Throws failure.
  stored_texts(read_world& world, const source_file& file, const open_dataset& dataset);

  std::uint64_t file_bytes() const noexcept { return file_->bytes(); }
  /// Throws failure where reading fails for another reason than damage. Positions do not come in order.
  void visit(text_sink& to);

 private:
  void visit(const box& part, text_sink& to);
  void give(std::uint64_t position, std::span<const std::byte> references, text_sink& to);
  std::uint64_t position_of(const box& part) const noexcept;

  shared_description description_;
  std::unique_ptr<dataset_reader> reader_;
  address_format format_;
  std::unique_ptr<raw_file> file_;
  std::unique_ptr<global_heap> heap_;
  std::unique_ptr<scratch> scratch_;
  extents positions_{};                       // from one index to the next, along each axis
  std::uint64_t most_at_once_ = 0;            // values
  std::vector<std::byte> references_, fill_;  // read at once; what stands for the fill value
};

}  // namespace penstock::io
