#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

#include <map>
#include <string>
#include <vector>

namespace penstock::io {

/// Texts of variable length as class codes: libhdf5 reads them once, and every different text gets a number.
class label_reader final : public dataset_reader {
 public:
  /// Throws failure, also where there are too many different texts to be classes.
  label_reader(read_world& world, hid_t dataset, const dataset_description& description);

  /// The different texts, sorted.
  std::vector<std::string> names() const;
  /// Gives the codes their places in `all`, which is sorted and has all of names().
  void number_by(const std::vector<std::string>& all);

  reader_memory memory(std::size_t row_axis) const override;
  void read(const read_request& request, scratch& s) const override;

 private:
  void read_texts(hid_t dataset, hid_t memory);
  void add(const char* text);

  std::size_t rank_;
  extents shape_{}, strides_{};
  std::map<std::string, std::int32_t, std::less<>> found_;  // codes in the order in which they were met
  std::vector<std::int32_t> codes_;
};

}  // namespace penstock::io
