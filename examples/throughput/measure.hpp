#pragma once

#include <penstock/gpu/memory.hpp>
#include <penstock/pipeline/calibration.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/pipeline/price.hpp>
#include <penstock/pipeline/report.hpp>
#include <penstock/pipeline/source.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// How long and how often something is timed.
struct timing {
  std::uint64_t epochs = 0;  ///< of one repetition; 0: so many that it takes `seconds` at least
  double seconds = 2;
  std::size_t repetitions = 3;
};

/// One that counted.
struct repetition {
  std::uint64_t epochs = 0;
  double seconds = 0;
};

/// What is streamed, and where to.
struct stream_request {
  std::string file;  ///< a path, or a pattern of many
  std::string dataset;
  penstock::pipeline::field_options values{};  ///< what its values are cast to, scale and shift
  std::vector<std::string> others{};           ///< datasets whose rows come in the same batches, as they are stored
  std::string order_name = "sequential";
  penstock::pipeline::order_options order;
  bool around_page_cache = false;
  penstock::gpu::device device = penstock::gpu::device::host();
  penstock::gpu::budget budget;
  penstock::pipeline::transport_options transport;
  std::optional<penstock::pipeline::calibration> calibrated{};  ///< what takes the place of `transport`
  std::string trace;                                            ///< a file for what blocks went through, or empty
};

/// One line of the table: the median repetition's rate, and the checksum of one epoch.
struct figure {
  std::string reader;   ///< penstock, baseline, resident or pread
  std::string dataset;  ///< as name_of() has it
  std::string order;
  std::size_t batch_rows = 0;
  double rows_per_second = 0;
  double bytes_per_second = 0;
  double least_bytes_per_second = 0;  ///< of the repetitions
  double most_bytes_per_second = 0;
  std::vector<repetition> repetitions{};
  /// What it took of the storage, as bytes are stored there, and of the link; 0: nothing.
  double stored_bytes_per_second = 0, copied_bytes_per_second = 0;
  std::uint64_t checksum = 0;
  bool whole = true;             ///< every row of the dataset is in the checksum, once
  std::size_t device_bytes = 0;  ///< allocated, all of it before the first epoch
  std::size_t pinned_bytes = 0;
  double first_batch_seconds =
      0;  ///< from asking for epochs, the median of the repetitions; Penstock's, as what follows
  penstock::pipeline::pipeline_report report;  ///< of all epochs, those that did not count too
  std::uint64_t dropped_spans = 0;             ///< of the trace
  std::optional<penstock::pipeline::calibration> calibrated{};
  std::optional<penstock::pipeline::order_price> price{};  ///< of the order, where it was asked for
  penstock::pipeline::field_options values{};              ///< the request's, as are others
  std::vector<std::string> others{};
};

/// What some epochs took, and the sum of their checksums.
struct pass {
  double seconds = 0;
  std::uint64_t checksum = 0;
  double first_batch_seconds = 0;
};

/// Times `run(epochs)`: once with one epoch to warm up, then as `how` says. Where epochs are to be found, a quarter of
/// what the first one says is tried, and whatever takes less than `how.seconds` does not count: it says how many are
/// tried next. What reaches them is a repetition, the first one that does, too. Repetitions may differ in their epochs.
/// Of an even number of repetitions, the median is the mean of the middle two. Throws std::runtime_error where epochs
/// differ in their checksum. `rows` and `row_bytes` make rates of it.
figure time_epochs(const timing& how, std::uint64_t rows, std::size_t row_bytes,
                   const std::function<pass(std::uint64_t epochs)>& run);

/// Opens the datasets and plans for batches of `largest_batch` rows; gives the stored bytes of a row. What would end a
/// measurement is thrown here, before any is made: io::error, std::invalid_argument, gpu::budget_error.
std::size_t check(const stream_request& request, std::size_t largest_batch);

/// The same for the baseline: throws where the plain loop cannot read the dataset as rows of `row_bytes`.
void check_baseline(const stream_request& request, std::size_t row_bytes);

/// "/images as float32 + /labels".
std::string name_of(const stream_request& request);
/// Whether a dataset is streamed alone, as it is stored.
bool is_plain(const stream_request& request) noexcept;
/// The locations of all datasets.
std::vector<penstock::io::location> datasets_of(const stream_request& request);
/// How many bytes the dataset takes in its files for each one of its rows': below 1 where it is compressed.
double stored_per_byte(const stream_request& request);

/// Reads the dataset as field "rows", and the others beside it, in the request's order.
penstock::pipeline::description describe_rows(const stream_request& request, std::size_t batch_rows);
/// The same, opened.
penstock::pipeline::opened open_rows(const stream_request& request, std::size_t batch_rows);
/// Bytes of a row of a field, in a batch.
std::size_t row_bytes_of(const penstock::pipeline::field_shape& field);
/// Stored bytes of a row, over all fields.
std::size_t stored_row_bytes(const stream_request& request);
/// Bytes of the blocks that the pipeline's plan would move.
std::size_t planned_block_bytes(const stream_request& request, std::size_t batch_rows);

/// The consumer's own memory, which comes from the same budget.
penstock::gpu::ledger consumer_items();
/// Where it lies.
struct consumer_memory {
  explicit consumer_memory(const penstock::gpu::memory& memory);
  std::uint64_t* total;   ///< the device's sum
  std::uint64_t* result;  ///< pinned
};

/// Streams the datasets through Penstock in batches of `batch_rows`, with a consumer that reads every byte on the
/// device, of one field after another. The checksum is that of the values which it gets: after a cast. Rates are of
/// stored bytes, which are what link and storage carry.
figure measure_pipeline(const stream_request& request, std::size_t batch_rows, const timing& how);

/// The plain loop to compare with: one thread; H5Dread of a batch, through a chunk cache that holds one row of chunks,
/// into pinned memory; one copy; the same checksum. Rows come as they lie in the files, whatever the request's order.
figure measure_baseline(const stream_request& request, std::size_t row_bytes, std::size_t batch_rows,
                        const timing& how);

/// The bar for the host device: as many threads as processors (or as the request has), which take a batch each in
/// turn (1 MiB where a batch is less) with one positioned read, and sum it up themselves. Throws where the dataset's
/// bytes do not lie one after another in their files.
void check_pread(const stream_request& request);
figure measure_pread(const stream_request& request, std::size_t batch_rows, const timing& how);

/// The bar for small batches: the same consumer kernel, batch by batch, on rows that already lie in the device's
/// memory. Half of the device's budget holds them; of a larger dataset, the first rows are used again and again. Throws
/// where a batch, or what loads them, does not fit beside them.
void check_resident(const stream_request& request, std::size_t batch_rows);
figure measure_resident(const stream_request& request, std::size_t batch_rows, const timing& how);

}  // namespace examples
