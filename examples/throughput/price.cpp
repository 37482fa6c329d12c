#include "price.hpp"

#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace examples {
namespace {

constexpr std::uint64_t piece_rows = 1 << 16;

/// Rows with the same bytes are of one class.
std::vector<std::uint32_t> classes_of(const penstock::io::row_reader& labels) {
  std::vector<std::uint32_t> classes;
  classes.reserve(labels.rows());
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<std::byte> piece(std::min(piece_rows, labels.rows()) * labels.row_bytes());
  for (std::uint64_t first = 0; first < labels.rows(); first += piece_rows) {
    const std::uint64_t rows = std::min(piece_rows, labels.rows() - first);
    labels.read(first, rows, std::span(piece).first(rows * labels.row_bytes()));
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto* bytes = reinterpret_cast<const char*>(piece.data() + row * labels.row_bytes());
      const auto number = static_cast<std::uint32_t>(numbers.size());
      classes.push_back(numbers.try_emplace(std::string(bytes, labels.row_bytes()), number).first->second);
    }
  }
  return classes;
}

}  // namespace

penstock::pipeline::order_price price_of(const stream_request& request, const std::string& labels,
                                         std::size_t batch_rows) {
  const auto opened = open_rows(request, batch_rows);
  const penstock::io::row_reader reader(penstock::io::datasets(request.file, labels));
  if (reader.rows() != opened.rows())
    throw std::runtime_error(fmt::format("{}:{} has {} labels, and {} {} rows; mixing takes one label for each row",
                                         request.file, labels, reader.rows(), request.dataset, opened.rows()));
  auto price = opened.price();
  price.mixing = penstock::pipeline::mixing(opened.row_order(), classes_of(reader), batch_rows);
  return price;
}

}  // namespace examples
