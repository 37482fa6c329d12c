#include "label_reader.hpp"

#include "ask_for_memory.hpp"
#include "chunk_check.hpp"
#include "read_driver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::size_t most_classes = 1 << 16;
constexpr std::uint64_t texts_at_once = 1 << 14;               // libhdf5 allocates each
constexpr std::uint64_t most_values = std::uint64_t{1} << 28;  // 1 GiB of codes

/// Texts that libhdf5 allocated, given back at the end.
class texts {
 public:
  texts(hid_t memory, hid_t space, std::uint64_t count) : memory_(memory), space_(space), all_(count, nullptr) {}
  ~texts() { H5Dvlen_reclaim(memory_, space_, H5P_DEFAULT, all_.data()); }
  texts(const texts&) = delete;
  texts& operator=(const texts&) = delete;
  std::vector<char*>& all() noexcept { return all_; }

 private:
  hid_t memory_, space_;
  std::vector<char*> all_;
};

}  // namespace

label_reader::label_reader(read_world& world, hid_t dataset, const dataset_description& d) : rank_(d.rank) {
  if (d.values() > most_values) throw failure(fmt::format("{} texts are too many to be labels", d.values()));
  std::copy(d.info.shape.begin(), d.info.shape.end(), shape_.begin());
  strides_ = packed_strides(shape_, rank_, sizeof(std::int32_t));
  ask_for_memory(world.faults, memory_items::staged, d.values() * sizeof(std::int32_t));
  codes_.reserve(d.values());
  const stopwatch watch(world.count.lock_nanoseconds);
  const library_guard guard;
  box all;
  all.rank = rank_;
  all.count = shape_;
  if (rank_ > 0 && d.values() > 0) chunk_check(d, world.checks).look(dataset, all, 0);
  if (d.values() > 0) read_texts(dataset, d.value.memory.native());
}

void label_reader::read_texts(hid_t dataset, hid_t memory) {
  const space_id there(checked(H5Dget_space(dataset), "its shape cannot be read"));
  std::uint64_t rows = rank_ > 0 ? shape_[0] : 1, row = 1;
  for (std::size_t k = 1; k < rank_; ++k) row *= shape_[k];
  const auto some = std::max<std::uint64_t>(1, texts_at_once / row);
  for (std::uint64_t first = 0; first < rows; first += some) {
    const hsize_t count = std::min(some, rows - first), values = count * row;
    const space_id here(checked(H5Screate_simple(1, &values, nullptr), "a memory space cannot be made"));
    if (rank_ > 0) {
      std::array<hsize_t, max_rank> start{}, extent{};
      std::copy_n(shape_.begin(), rank_, extent.begin());
      start[0] = first;
      extent[0] = count;
      checked(H5Sselect_hyperslab(there.native(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
              "its rows cannot be selected");
    }
    texts piece(memory, here.native(), values);
    take_driver_error();
    checked(H5Dread(dataset, memory, here.native(), there.native(), H5P_DEFAULT, piece.all().data()),
            "libhdf5 cannot read its texts");
    refuse_unopened_sources();
    for (const char* text : piece.all()) add(text != nullptr ? text : "");
  }
}

void label_reader::add(const char* text) {
  auto found = found_.find(std::string_view(text));
  if (found == found_.end()) {
    if (found_.size() == most_classes)
      throw failure(
          fmt::format("it has more than {} different texts, which are no class labels; store numbers", most_classes));
    found = found_.emplace(text, static_cast<std::int32_t>(found_.size())).first;
  }
  codes_.push_back(found->second);
}

std::vector<std::string> label_reader::names() const {
  std::vector<std::string> all;
  for (const auto& [name, code] : found_) all.push_back(name);
  return all;
}

void label_reader::number_by(const std::vector<std::string>& all) {
  std::vector<std::int32_t> place(found_.size());
  for (auto& [name, code] : found_) {
    const auto at = static_cast<std::int32_t>(std::lower_bound(all.begin(), all.end(), name) - all.begin());
    place[static_cast<std::size_t>(code)] = at;
    code = at;
  }
  for (auto& code : codes_) code = place[static_cast<std::size_t>(code)];
}

reader_memory label_reader::memory(std::size_t) const {
  reader_memory m;
  m.staged_bytes = codes_.size() * sizeof(std::int32_t);
  return m;
}

void label_reader::read(const read_request& request, scratch&) const {
  const auto& part = request.part;
  const auto* from = reinterpret_cast<const std::byte*>(codes_.data());
  for (std::size_t k = 0; k < rank_; ++k) from += part.start[k] * strides_[k];
  copy_runs(plan_runs(part.count, part.rank, strides_, request.strides, sizeof(std::int32_t)), from, request.out);
}

}  // namespace penstock::io
