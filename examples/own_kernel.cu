// Streams a dataset to a CUDA device and uses the batches in a kernel of its own: own_kernel FILE.h5 /dataset

#include <penstock/pipeline/description.hpp>

#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace ps = penstock;
using namespace ps::literals;

/// Adds up all values.
__global__ void add_values(const float* values, std::size_t count, double* sum) {
  double own = 0;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) own += values[i];
  atomicAdd(sum, own);
}

void stream_to_kernel(const char* file, const char* dataset, ps::gpu::device device) {
  auto source = ps::pipeline::source{}.field("x", ps::io::datasets(file, dataset), {.as = ps::type::float32});
  auto opened = (ps::pipeline::read(source) | ps::pipeline::batch_options{.rows = 1024}).open();

  // Eight bytes of our own come from the same budget as the pipeline's memory.
  const ps::gpu::budget budget{.device_bytes = 64_MiB, .pinned_bytes = 64_MiB};
  ps::gpu::ledger items;
  items.add(ps::gpu::memory_kind::device, "sum", sizeof(double));
  items.add(ps::gpu::memory_kind::pinned, "result", sizeof(double));
  const auto plan = opened.plan(device, budget, items);
  items.add(plan.ledger);
  const auto memory = std::make_shared<ps::gpu::memory>(device, items);
  auto* const sum = reinterpret_cast<double*>(memory->at(ps::gpu::memory_kind::device, "sum").data());
  auto* const result = reinterpret_cast<double*>(memory->at(ps::gpu::memory_kind::pinned, "result").data());

  const ps::gpu::stream stream(device);
  auto pipeline = std::move(opened).build(plan, memory);
  ps::gpu::fill(stream, sum, 0, sizeof(double));
  for (auto& batch : pipeline.epochs(0, 1, {.stream = stream})) {
    // The rows are there, in the order of the batch's stream; when the loop goes on, they return in that order too.
    const auto x = batch.view("x");
    add_values<<<64, 256, 0, batch.stream().native()>>>(batch.field<float>("x"),
                                                        batch.rows() * x.row_bytes / sizeof(float), sum);
    if (const cudaError_t failure = cudaGetLastError(); failure != cudaSuccess)
      throw std::runtime_error(std::string("the kernel could not be launched: ") + cudaGetErrorString(failure));
  }
  ps::gpu::copy(stream, result, sum, sizeof(double));
  stream.synchronize();
  std::cout << pipeline.rows() << " rows on " << device.description() << ", sum " << *result << "\n\n"
            << pipeline.report();
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: own_kernel FILE.h5 /dataset\n";
    return 2;
  }
  const auto device = ps::gpu::device::best();
  if (device.is_host()) {
    std::cerr << "skipped: " << device.description() << '\n';
    return 77;
  }
  stream_to_kernel(argv[1], argv[2], device);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "own_kernel: " << e.what() << '\n';
  return 1;
}
