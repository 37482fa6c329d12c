// Reads a dataset in shuffled batches and adds its values up: read_batches FILE.h5 /dataset

#include <penstock/pipeline/description.hpp>

#include <exception>
#include <iostream>
#include <numeric>

namespace ps = penstock;
using namespace ps::literals;

void read_batches(const char* file, const char* dataset) {
  // [readme]
  // A description: what to read, as which type, in which order, in which batches. Nothing is opened yet.
  auto source = ps::pipeline::source{}.field("x", ps::io::datasets(file, dataset), {.as = ps::type::float32});
  auto batches =
      ps::pipeline::read(source, ps::pipeline::shuffled{.seed = 42}) | ps::pipeline::batch_options{.rows = 256};

  // All memory is planned within a budget, then allocated once. Too small a budget is refused here, with the smallest
  // that would do. On ps::gpu::device::best() the rows would arrive on the GPU, if there is one.
  auto pipeline = batches.build(ps::gpu::device::host(), {.device_bytes = 64_MiB, .pinned_bytes = 64_MiB});

  double sum = 0;
  for (auto& batch : pipeline.epochs(0, 2)) {
    const auto x = batch.view("x");
    const float* values = batch.field<float>("x");
    sum = std::accumulate(values, values + batch.rows() * x.row_bytes / sizeof(float), sum);
  }
  std::cout << "two epochs of " << pipeline.rows() << " rows, sum " << sum << "\n\n" << pipeline.report();
  // [readme]
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: read_batches FILE.h5 /dataset\n";
    return 2;
  }
  read_batches(argv[1], argv[2]);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "read_batches: " << e.what() << '\n';
  return 1;
}
