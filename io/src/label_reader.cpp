#include "label_reader.hpp"

#include "ask_for_memory.hpp"
#include "claimed_texts.hpp"
#include "stored_texts.hpp"
#include "virtual_texts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::size_t most_classes = 1 << 16;
constexpr std::uint64_t most_values = std::uint64_t{1} << 28;  // 1 GiB of codes
constexpr std::size_t most_whys = 256;
constexpr std::size_t name_node_bytes = 96;  // what a name takes beside its characters, about

/// Whether each value is the fill value: there is nothing to read, whatever shape the header claims.
bool stores_nothing(const dataset_description& d) {
  return d.info.stored_bytes == 0 && d.external_files == 0 && d.info.layout != layout::virtual_dataset &&
         d.fill != fill_kind::undefined;
}

}  // namespace

class label_reader::sink final : public text_sink {
 public:
  sink(label_reader& to, const fault_seam& faults) : to_(to), faults_(faults) {}

  void empty(std::uint64_t position) override {
    if (empty_ < 0) empty_ = to_.code_of({});
    to_.codes_[position] = empty_;
  }
  void fill(std::uint64_t position, const std::string& text) override {
    if (fill_ < 0) fill_ = to_.code_of(text);
    to_.codes_[position] = fill_;
  }
  void stored(std::uint64_t position, global_heap::object& object, global_heap& heap) override {
    if (object.note < 0) {
      ask_for_memory(faults_, memory_items::staged, object.bytes);
      object.note = to_.code_of(heap.text());
    }
    to_.codes_[position] = object.note;
  }
  void damaged(std::uint64_t position, std::uint64_t count, const std::string& why) override {
    const auto mark = to_.mark_of(why);
    std::fill_n(to_.codes_.begin() + static_cast<std::ptrdiff_t>(position), count, mark);
  }

 private:
  label_reader& to_;
  const fault_seam& faults_;
  std::int32_t empty_ = -1, fill_ = -1;
};

label_reader::label_reader(read_world& world, const source_file& file, const open_dataset& dataset,
                           const dataset_description& d)
    : rank_(d.rank) {
  if (d.values() > most_values) throw failure(fmt::format("{} texts are too many to be labels", d.values()));
  std::copy(d.info.shape.begin(), d.info.shape.end(), shape_.begin());
  strides_ = packed_strides(shape_, rank_, sizeof(std::int32_t));
  if (d.values() == 0) return;
  const stopwatch watch(world.count.lock_nanoseconds);
  const library_guard guard;
  one_code_ = stores_nothing(d);
  const auto ask = [&](std::uint64_t codes) {
    ask_for_memory(world.faults, memory_items::staged, codes * sizeof(std::int32_t));
  };
  if (one_code_) {
    ask(1);
    codes_ = {code_of(describe_dataset(dataset, text_form::references).fill_text)};
  } else if (d.info.layout == layout::virtual_dataset) {
    virtual_texts texts(world, file, dataset, d);
    check_claimed_texts(d.values(), texts.file_bytes());
    ask(d.values());
    codes_.reserve(d.values());
    texts.visit([&](const char* text) { codes_.push_back(code_of(text != nullptr ? text : "")); });
  } else {
    stored_texts texts(world, file, dataset);
    check_claimed_texts(d.values(), texts.file_bytes());
    ask(d.values());
    codes_.resize(d.values());
    sink to(*this, world.faults);
    texts.visit(to);
    world.library.close_idle();
  }
  if (found_.empty()) throw damage(whys_.front());
}

std::int32_t label_reader::code_of(std::string text) {
  const auto found = found_.find(text);
  if (found != found_.end()) return found->second;
  if (found_.size() == most_classes)
    throw failure(
        fmt::format("it has more than {} different texts, which are no class labels; store numbers", most_classes));
  name_bytes_ += name_node_bytes + text.size();
  return found_.emplace(std::move(text), static_cast<std::int32_t>(found_.size())).first->second;
}

std::int32_t label_reader::mark_of(const std::string& why) {
  auto at = std::find(whys_.rbegin(), whys_.rend(), why);  // most often as the last
  if (at == whys_.rend() && whys_.size() == most_whys) at = whys_.rbegin();
  if (at == whys_.rend()) {
    whys_.push_back(why);
    at = whys_.rbegin();
  }
  return -static_cast<std::int32_t>(whys_.rend() - at);
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
  for (auto& code : codes_)
    if (code >= 0) code = place[static_cast<std::size_t>(code)];
}

reader_memory label_reader::memory(std::size_t) const {
  reader_memory m;
  m.staged_bytes = codes_.size() * sizeof(std::int32_t) + name_bytes_;
  return m;
}

/// Names the first of the rows that follow each other.
void label_reader::refuse_damaged(const read_request& request) const {
  const auto& part = request.part;
  const auto code_at = [&](const extents& at) {
    std::size_t position = 0;
    for (std::size_t k = 0; k < rank_; ++k) position += at[k] * (strides_[k] / sizeof(std::int32_t));
    return codes_[position];
  };
  std::int32_t why = 0;
  std::vector<bool> is_damaged(rank_ > 0 ? part.count[request.row_axis] : 1);
  auto at = part.start;
  for (std::size_t k = rank_ + 1; k > 0;) {
    if (const auto code = code_at(at); code < 0) {
      const auto row = rank_ > 0 ? at[request.row_axis] - part.start[request.row_axis] : 0;
      is_damaged[row] = true;
      if (why == 0) why = code;
    }
    for (k = rank_; k > 0 && ++at[k - 1] == part.start[k - 1] + part.count[k - 1]; --k) at[k - 1] = part.start[k - 1];
  }
  if (why == 0) return;
  damage e(whys_[static_cast<std::size_t>(-1 - why)]);
  if (rank_ > 0) {
    const auto first = std::find(is_damaged.begin(), is_damaged.end(), true);
    const auto last = std::find(first, is_damaged.end(), false);
    e.rows = {part.start[request.row_axis] + static_cast<std::uint64_t>(first - is_damaged.begin()),
              static_cast<std::uint64_t>(last - first)};
  }
  throw e;
}

void label_reader::read(const read_request& request, scratch&) const {
  const auto& part = request.part;
  if (part.empty()) return;
  if (one_code_) return fill_box(part.count, part.rank, request.strides, std::as_bytes(std::span(codes_)), request.out);
  if (!whys_.empty()) refuse_damaged(request);
  const auto* from = reinterpret_cast<const std::byte*>(codes_.data());
  for (std::size_t k = 0; k < rank_; ++k) from += part.start[k] * strides_[k];
  copy_runs(plan_runs(part.count, part.rank, strides_, request.strides, sizeof(std::int32_t)), from, request.out);
}

}  // namespace penstock::io
