#include "data.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace examples {
namespace {

namespace io = penstock::io;
namespace pipeline = penstock::pipeline;

constexpr double most_classes = 1 << 20;
constexpr std::uint64_t runs_of_a_pool = 4;
constexpr std::uint64_t pool_bytes = 2 << 20;

std::vector<io::location> in_all_files(const train_options& o, const std::string& dataset) {
  std::vector<io::location> all;
  for (const std::string& pattern : o.files) {
    const auto found = io::datasets(pattern, dataset);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

/// The first of `paths` that the file holds; empty where it holds none.
std::string first_there(const io::file& file, std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (file.contains(path)) return path;
  return {};
}

std::string or_default(const std::string& given, const io::file& file, std::initializer_list<const char*> paths,
                       const char* option) {
  if (!given.empty()) return given;
  const std::string found = first_there(file, paths);
  if (!found.empty()) return found;
  std::string there;
  for (const auto& dataset : file.datasets()) there += (there.empty() ? "" : ", ") + dataset.path;
  throw std::invalid_argument(fmt::format("{}: which dataset? Name it with {}; there are {}", file.path().string(),
                                          option, there.empty() ? "none" : there));
}

/// IEEE 754 binary16: one bit of sign, five of exponent with a bias of 15, ten of mantissa.
double value_of(penstock::float16_t half) {
  const int exponent = half.bits >> 10 & 0x1f, mantissa = half.bits & 0x3ff;
  double magnitude = std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  return half.bits >> 15 != 0 ? -magnitude : magnitude;
}

/// Value number `n` of a row reader's bytes, in this machine's byte order.
template <class T>
double value_at(const std::byte* bytes, std::size_t n, bool swapped) {
  std::array<std::byte, sizeof(T)> raw{};
  std::memcpy(raw.data(), bytes + n * sizeof(T), sizeof(T));
  if (swapped) std::reverse(raw.begin(), raw.end());
  const T value = std::bit_cast<T>(raw);
  if constexpr (std::is_same_v<T, penstock::float16_t>)
    return value_of(value);
  else if constexpr (std::is_same_v<T, penstock::bfloat16_t>)
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
  else
    return static_cast<double>(value);
}

/// One more than the largest label, from a pass over all of them. Throws io::error at one that is no whole number from
/// 0 up to `most`.
std::size_t count_classes(const std::vector<io::location>& labels, double most = most_classes) {
  io::row_reader reader(labels);
  reader.reserve({});
  if (reader.row_bytes() != penstock::size_of(reader.element().element))
    throw io::error("a label is one number for each row; name another dataset",
                    {.file = labels.front().file.string(), .dataset = labels.front().dataset});
  constexpr std::uint64_t piece_rows = 65536;
  std::vector<std::byte> bytes;
  double largest = 0;
  for (std::uint64_t first = 0; first < reader.rows(); first += piece_rows) {
    const std::uint64_t rows = std::min(piece_rows, reader.rows() - first);
    bytes.resize(rows * reader.row_bytes());
    reader.read(first, rows, bytes);
    penstock::visit_type(reader.element().element, [&](auto zero) {
      for (std::size_t n = 0; n < rows; ++n) {
        const double label = value_at<decltype(zero)>(bytes.data(), n, reader.element().swapped);
        if (label >= 0 && label == std::floor(label) && label < most) {
          largest = std::max(largest, label);
          continue;
        }
        const auto& part = reader.segment_of(first + n);
        throw io::error(
            fmt::format("the label is {}; labels are whole numbers from 0 to {}", label, most - 1),
            {.file = part.where.file.string(), .dataset = part.where.dataset, .rows = {first + n - part.first_row, 1}});
      }
    });
  }
  return std::max<std::size_t>(2, static_cast<std::size_t>(largest) + 1);
}

}  // namespace

training_data find_data(const train_options& o) {
  const io::file first(io::datasets(o.files.front(), "/").front().file);
  training_data data;
  data.training.x = in_all_files(o, or_default(o.x, first, {"/train/images", "/x"}, "--x"));
  data.training.y = in_all_files(o, or_default(o.y, first, {"/train/labels", "/label"}, "--y"));
  const std::string test_x = o.test_x.empty() && o.x.empty() ? first_there(first, {"/test/images"}) : o.test_x;
  const std::string test_y = o.test_y.empty() && o.y.empty() ? first_there(first, {"/test/labels"}) : o.test_y;
  if (test_x.empty() != test_y.empty()) throw std::invalid_argument("a test set needs both --test-x and --test-y");
  if (!test_x.empty()) data.testing = labelled_rows{in_all_files(o, test_x), in_all_files(o, test_y)};
  if (penstock::train::classes_of(loss_of(o), 2) == 0) {
    const io::row_reader values(data.training.y);
    data.outputs = values.row_bytes() / penstock::size_of(values.element().element);
    return data;
  }
  // Every label is looked at before anything is trained: a cast on the way would hide what does not fit.
  data.outputs = count_classes(data.training.y, o.classes != 0 ? static_cast<double>(o.classes) : most_classes);
  if (o.classes != 0) data.outputs = o.classes;
  if (data.testing) count_classes(data.testing->y, static_cast<double>(data.outputs));
  return data;
}

pipeline::shuffled order_of(const labelled_rows& rows, const train_options& o) {
  pipeline::shuffled order = o.order;
  if (order.pool_rows != 0) return order;
  const auto opened = open_rows(rows, 1, o);
  const std::size_t row_bytes = std::max<std::size_t>(1, io::row_reader(rows.x).row_bytes());
  const std::uint64_t run = std::max<std::uint64_t>(1, opened.row_order().run_rows());
  const std::uint64_t wanted = std::max(runs_of_a_pool, pool_bytes / row_bytes / run);
  order.run_rows = run;
  order.pool_rows = std::min(wanted * run, std::max(opened.row_order().window_rows(), run));
  return order;
}

pipeline::opened open_rows(const labelled_rows& rows, std::size_t batch_rows, const train_options& o) {
  const bool of_classes = penstock::train::classes_of(loss_of(o), 2) != 0;
  auto source = pipeline::source{}
                    .field("x", rows.x, {.as = penstock::type::float32})
                    .field("label", rows.y, {.as = of_classes ? penstock::type::int32 : penstock::type::float32});
  // No batch is held beside the one in use: the rings are as small as can be.
  return (pipeline::read(source, o.order) |
          pipeline::batch_options{.rows = batch_rows, .last = pipeline::last_batch::pad, .held = 0} |
          pipeline::transport_options{.threads = o.threads})
      .open();
}

}  // namespace examples
