// How fast io's decoders and reads are. The files are made by h5py in a temporary folder.
#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "benchmarks.hpp"

namespace {

/// Into the page cache as a reader finds it: by reading ahead, not as the pieces in which it was written.
void read_from_disk(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> piece(std::size_t{1} << 20);
  while (::read(fd, piece.data(), piece.size()) > 0) {
  }
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-benchmark-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string make = "/usr/bin/python3 '" PENSTOCK_BENCHMARK_SOURCE "/make_files.py' '" + folder.string() + "'";
  int status = std::system(make.c_str());
  if (status == 0) {
    for (const char* name : {"chunks.h5", "rows.h5"}) read_from_disk(folder / name);
    add_decoders(folder);
    add_reads(folder);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
  } else {
    std::cerr << "the files to read cannot be made; is h5py there?\n";
  }
  std::filesystem::remove_all(folder);
  return status == 0 ? 0 : 1;
}
