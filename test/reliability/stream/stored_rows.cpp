#include "stored_rows.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "../../../examples/make_dataset/rows_file.hpp"

namespace penstock::test {
namespace {

constexpr std::uint64_t chunk_rows = 256;

std::filesystem::path plain_in(const std::filesystem::path& folder) { return folder / "plain.h5"; }
std::filesystem::path packed_in(const std::filesystem::path& folder) { return folder / "packed.h5"; }

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(fmt::format("libhdf5 failed to {} the rows", what));
}

std::uint64_t sum_of(const std::filesystem::path& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, "/x", H5P_DEFAULT);
  const hid_t space = H5Dget_space(set);
  hsize_t shape[2]{};
  require(H5Sget_simple_extent_dims(space, shape, nullptr) == 2, "describe");
  std::vector<std::uint32_t> words;
  std::uint64_t sum = 0;
  for (hsize_t first = 0; first < shape[0]; first += chunk_rows) {
    const hsize_t start[] = {first, 0}, count[] = {std::min<hsize_t>(chunk_rows, shape[0] - first), shape[1]};
    const hid_t piece = H5Screate_simple(2, count, nullptr);
    words.resize(count[0] * count[1]);
    // As float32, the stored type: no bit is converted.
    require(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr) >= 0 &&
                H5Dread(set, H5T_IEEE_F32LE, piece, space, H5P_DEFAULT, words.data()) >= 0,
            "read");
    H5Sclose(piece);
    for (const std::uint32_t word : words) sum += word;
  }
  H5Sclose(space), H5Dclose(set), H5Fclose(file);
  return sum;
}

}  // namespace

stored_rows::stored_rows(const std::filesystem::path& folder, std::uint64_t bytes)
    : folder_(folder / fmt::format("penstock-soak-stream-{}", ::getpid())),
      plain_rows_(std::max<std::uint64_t>(bytes / row_bytes * 3 / 4, 1)),
      packed_rows_(std::max<std::uint64_t>(bytes / row_bytes / 4, 1)) {
  std::filesystem::create_directory(folder_);
  examples::synthetic_task task{.columns = columns, .seed = 1};
  examples::write_rows_file(task, plain_rows_, {.chunk_shape = {chunk_rows, columns}}, plain_in(folder_), {});
  task.seed = 2;
  examples::write_rows_file(task, packed_rows_,
                            {.chunk_shape = {chunk_rows, columns}, .deflate_level = 1, .shuffle = true},
                            packed_in(folder_), {});
}

stored_rows::~stored_rows() {
  std::error_code none;
  std::filesystem::remove_all(folder_, none);
}

std::vector<io::location> stored_rows::segments(std::uint64_t times) const {
  std::vector<io::location> all;
  for (std::uint64_t n = 0; n < times; ++n) {
    all.push_back({plain_in(folder_), "/x"});
    all.push_back({packed_in(folder_), "/x"});
  }
  return all;
}

std::string stored_rows::plain_file() const { return plain_in(folder_).string(); }

std::uint64_t stored_rows::checksum() const { return sum_of(plain_in(folder_)) + sum_of(packed_in(folder_)); }

}  // namespace penstock::test
