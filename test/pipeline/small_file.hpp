#pragma once

#include <penstock/io/location.hpp>
#include <penstock/pipeline/description.hpp>

#include <boost/test/data/dataset.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::test {

/// A file whose every value is known by arithmetic: /wide float32 [rows, 33], value row * 33 + column; /image uint8
/// [rows, 3, 4], value (row * 12 + element) % 251; /label int32 [rows], value row. Removed with the object.
class small_file {
 public:
  explicit small_file(std::uint64_t rows, std::uint64_t chunk_rows = 0, int deflate_level = -1);
  ~small_file();
  small_file(const small_file&) = delete;
  small_file& operator=(const small_file&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t rows() const { return rows_; }
  std::vector<io::location> at(const std::string& dataset) const { return io::datasets(path_.string(), dataset); }
  /// All three fields; the image as float32, twice its value and one more.
  pipeline::source all() const;
  /// /wide and /label alone: nothing to convert.
  pipeline::source plain() const;

 private:
  std::filesystem::path path_;
  std::uint64_t rows_;
};

/// The bytes of a batch's field, on the host, once its stream is done.
template <class T>
std::vector<T> fetch(const pipeline::batch& batch, std::string_view field);

/// Row numbers of every valid row in the order in which a run gave them, after checking that each row's values are
/// those of its number.
std::vector<std::uint64_t> consume(pipeline::pipeline& from, std::uint64_t first_epoch, std::uint64_t epochs,
                                   pipeline::consume_options options = {});
/// The same check of one batch, appended to `rows`.
void check(const pipeline::batch& batch, std::vector<std::uint64_t>& rows);

/// The host, and the first CUDA device where there is one: "every device" of data-driven cases.
std::vector<std::string> devices();

}  // namespace penstock::test
