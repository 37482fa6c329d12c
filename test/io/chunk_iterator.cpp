// Compares H5Dchunk_iter with what H5Dread_chunk is seen to read, on files that it writes: run once wherever libhdf5
// has H5Dchunk_iter (1.10.10, 1.12.3, 1.14 on). Stands alone, for machines without the libraries that the other tests
// need: links a few of io's sources, libhdf5, and nothing else. Usage: chunk_iterator FOLDER

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "chunk_index.hpp"
#include "read_driver.hpp"

namespace io = penstock::io;

namespace {

struct shape_case {
  const char* name;
  std::array<hsize_t, 2> shape, most, chunk;
};

constexpr shape_case cases[] = {{"single", {50, 6}, {50, 6}, {50, 6}},
                                {"fixed", {50, 6}, {50, 6}, {7, 6}},
                                {"extensible", {50, 6}, {H5S_UNLIMITED, 6}, {7, 4}},
                                {"second_axis", {50, 6}, {50, H5S_UNLIMITED}, {7, 4}},
                                {"two_axes", {50, 6}, {H5S_UNLIMITED, H5S_UNLIMITED}, {7, 4}},
                                {"many", {65536, 1}, {65536, 1}, {1, 1}}};

/// Writes the rows from `first` on: chunks before stay missing.
void write(hid_t file, const shape_case& c, const std::string& name, bool packed, hsize_t first) {
  const hid_t space = H5Screate_simple(2, c.shape.data(), c.most.data()), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 2, c.chunk.data());
  if (packed) H5Pset_deflate(creation, 1);
  const hid_t dataset = H5Dcreate2(file, name.c_str(), H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::array<hsize_t, 2> start{first, 0}, count{c.shape[0] - first, c.shape[1]};
  std::vector<int> values(count[0] * count[1]);
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<int>(n / 3);
  const hid_t memory = H5Screate_simple(2, count.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  if (H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()) < 0) std::abort();
  H5Sclose(memory);
  H5Dclose(dataset);
  H5Pclose(creation);
  H5Sclose(space);
}

void make_file(const std::string& path, bool latest, hsize_t user_block) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
  if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Pset_userblock(creation, user_block);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  for (const auto& c : cases)
    for (const bool packed : {false, true}) {
      write(file, c, std::string(c.name) + (packed ? "_packed" : ""), packed, 0);
      write(file, c, std::string(c.name) + "_partly" + (packed ? "_packed" : ""), packed, c.shape[0] / 2);
    }
  H5Fclose(file);
  H5Pclose(access);
  H5Pclose(creation);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Whether both ways, and H5Dget_chunk_info_by_coord, say the same. Prints what differs.
bool agree(hid_t file, const std::string& path, const shape_case& c, const std::string& name) {
  const io::dataset_id dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  const io::chunk_grid grid({c.shape.begin(), c.shape.end()}, {c.chunk.begin(), c.chunk.end()});
  auto start = std::chrono::steady_clock::now();
  const auto listed = io::iterate_chunks(dataset.native(), grid);
  const double listing = seconds_since(start);
  if (!listed) {
    std::printf("this libhdf5 has no H5Dchunk_iter\n");
    return false;
  }
  start = std::chrono::steady_clock::now();
  const auto probed = io::probe_chunks(dataset.native(), grid);
  const double probing = seconds_since(start);
  std::size_t differ = 0, missing = 0;
  for (std::size_t n = 0; n < probed.size(); ++n) {
    const auto &a = (*listed)[n], &b = probed[n];
    missing += b.address == io::chunk_entry::missing;
    differ += a.address != b.address || a.bytes != b.bytes || a.mask != b.mask;
  }
  const bool odd = io::lists_wrong_coordinates(dataset.native());
  const bool checked =
      io::agrees_with_library(io::chunk_index(probed), dataset.native(), grid, io::user_block_of(file));
  std::printf("%s:%s: %zu chunks, %zu missing, %zu differ%s, by_coord %s; iterated in %.4f s, probed in %.4f s\n",
              path.c_str(), name.c_str(), probed.size(), missing, differ,
              odd ? " (the order of axes is known to be wrong: io probes)" : "", checked ? "agrees" : "DIFFERS",
              listing, probing);
  return (differ == 0 || odd) && checked;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  std::printf("libhdf5 %u.%u.%u\n", major, minor, release);
  bool right = true;
  for (const bool latest : {false, true})
    for (const hsize_t user_block : {hsize_t{0}, hsize_t{2048}}) {
      const auto path = std::string(argv[1]) + "/chunk_iterator.h5";
      make_file(path, latest, user_block);
      const auto access = io::read_only_access();
      const io::file_id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.native()));
      for (const auto& c : cases)
        for (const char* suffix : {"", "_packed", "_partly", "_partly_packed"})
          right = agree(file.native(), path, c, std::string(c.name) + suffix) && right;
      std::remove(path.c_str());
    }
  std::printf("%s\n", right ? "all agree" : "SOME DIFFER");
  return right ? 0 : 1;
}
