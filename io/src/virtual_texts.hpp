#pragma once

#include "open_reader.hpp"

#include <cstdint>
#include <functional>

namespace penstock::io {

/// The texts of a virtual dataset. libhdf5 finds the sources, and reads them: what refers to texts is looked at in all
/// of them before it follows that. A source that is not there gives fill values.
class virtual_texts {
 public:
  /// Looks at the sources of `dataset`, described by `description`; both must outlive this. Throws failure; damage,
  /// with the source's name, where one of its texts is damaged, shown or not.
  virtual_texts(read_world& world, const source_file& file, const open_dataset& dataset,
                const dataset_description& description);

  /// Of the dataset's file and those of its sources.
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  /// Calls `f` with each text in C order; null where there is none. Throws failure.
  void visit(const std::function<void(const char*)>& f) const;

 private:
  const open_dataset& dataset_;
  const dataset_description& description_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t most_at_once_ = 0;  // texts
};

}  // namespace penstock::io
