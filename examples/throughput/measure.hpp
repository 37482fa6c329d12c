#pragma once

#include <penstock/pipeline/description.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace examples {

/// How long and how often something is timed.
struct timing {
  std::uint64_t epochs = 0;  ///< of one repetition; 0: as many as take `seconds`
  double seconds = 2;
  std::size_t repetitions = 3;
};

/// What is streamed, and where to.
struct stream_request {
  std::string file;  ///< a path, or a pattern of many
  std::string dataset;
  penstock::pipeline::order_options order;
  penstock::gpu::device device = penstock::gpu::device::host();
  penstock::gpu::budget budget;
  penstock::pipeline::transport_options transport;
};

/// One line of the table: the median repetition's rate, and the checksum of one epoch.
struct figure {
  std::string dataset;
  std::size_t batch_rows = 0;
  double rows_per_second = 0;
  double bytes_per_second = 0;
  std::uint64_t checksum = 0;
  std::string report;  ///< the pipeline's; empty for the baseline
};

/// What some epochs took, and the sum of their checksums.
struct pass {
  double seconds = 0;
  std::uint64_t checksum = 0;
};

/// Times `run(epochs)`: once with one epoch to warm up, then as `how` says. Throws std::runtime_error where epochs
/// differ in their checksum. `rows` and `row_bytes` make rates of it.
figure time_epochs(const timing& how, std::uint64_t rows, std::size_t row_bytes,
                   const std::function<pass(std::uint64_t epochs)>& run);

/// Opens a dataset and plans for batches of `largest_batch` rows; gives the bytes of a row. What would end a
/// measurement is thrown here, before any is made: io::error, std::invalid_argument, gpu::budget_error.
std::size_t check(const stream_request& request, std::size_t largest_batch);

/// The same for the baseline: throws where the plain loop cannot read the dataset as rows of `row_bytes`.
void check_baseline(const stream_request& request, std::size_t row_bytes);

/// Streams a dataset through Penstock in batches of `batch_rows`, with a consumer that reads every byte on the device.
figure measure_pipeline(const stream_request& request, std::size_t batch_rows, const timing& how);

/// The plain loop to compare with: one thread; H5Dread of a batch, through a chunk cache that holds one row of chunks,
/// into pinned memory; one copy; the same checksum. Rows come as they lie in the files, whatever the request's order.
figure measure_baseline(const stream_request& request, std::size_t row_bytes, std::size_t batch_rows,
                        const timing& how);

}  // namespace examples
