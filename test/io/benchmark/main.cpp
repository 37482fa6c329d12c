// How fast io's decoders and reads are. The files are made by h5py in a temporary folder.
#include <benchmark/benchmark.h>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "benchmarks.hpp"

int main(int argc, char** argv) {
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-benchmark-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string make = "/usr/bin/python3 '" PENSTOCK_BENCHMARK_SOURCE "/make_files.py' '" + folder.string() + "'";
  int status = std::system(make.c_str());
  if (status == 0) {
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
