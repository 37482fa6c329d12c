#pragma once

#include "open_reader.hpp"

#include <map>
#include <string>
#include <vector>

namespace penstock::io {

/// Texts of variable length as class codes: they are read once, and every different text gets a number. Those that are
/// damaged have none: to read their rows is an error, as it is where numbers are damaged.
class label_reader final : public dataset_reader {
 public:
  /// Throws failure, also where there are too many different texts to be classes, and where all of them are damaged.
  label_reader(read_world& world, const source_file& file, const open_dataset& dataset,
               const dataset_description& description);

  /// The different texts, sorted.
  std::vector<std::string> names() const;
  /// Gives the codes their places in `all`, which is sorted and has all of names().
  void number_by(const std::vector<std::string>& all);

  reader_memory memory(std::size_t row_axis) const override;
  void read(const read_request& request, scratch& s) const override;

 private:
  class sink;

  std::int32_t code_of(std::string text);
  std::int32_t mark_of(const std::string& why);
  void refuse_damaged(const read_request& request) const;

  std::size_t rank_;
  extents shape_{}, strides_{};
  std::map<std::string, std::int32_t, std::less<>> found_;  // codes in the order in which they were met
  std::size_t name_bytes_ = 0;
  std::vector<std::int32_t> codes_;  // of texts that are damaged, -1 - n for whys_[n]; one where all are the same
  bool one_code_ = false;
  std::vector<std::string> whys_;
};

}  // namespace penstock::io
