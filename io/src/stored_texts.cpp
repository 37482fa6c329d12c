#include "stored_texts.hpp"

#include "ask_for_memory.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

constexpr std::uint64_t least_at_once = std::uint64_t{1} << 14, largest_at_once = std::uint64_t{1} << 22;
constexpr std::uint64_t together = std::uint64_t{1} << 12;  // texts that are damaged or not as one, where no chunk says

/// Whole rows of chunks, which are decoded once then.
std::uint64_t most_at_once(const dataset_description& d) {
  if (d.info.layout != layout::chunked) return least_at_once;
  std::uint64_t values = d.info.chunk_shape[0];
  for (std::size_t k = 1; k < d.rank; ++k)
    if (__builtin_mul_overflow(values, d.info.shape[k], &values)) return largest_at_once;
  return std::clamp(values, least_at_once, largest_at_once);
}

/// Where `part` is cut along `axis`: between chunks where it can be. 0 where it is one index.
std::uint64_t cut_of(const dataset_description& d, const box& part, std::size_t axis, bool within_chunks) {
  const auto start = part.start[axis], end = start + part.count[axis], middle = start + part.count[axis] / 2;
  if (part.count[axis] < 2) return 0;
  if (d.info.layout != layout::chunked) return middle;
  const auto chunk = d.info.chunk_shape[axis];
  if (const auto before = middle / chunk * chunk; before > start) return before;
  if (const auto after = (middle / chunk + 1) * chunk; after < end) return after;
  return within_chunks ? middle : 0;
}

/// Halves that follow each other in C order: all before the axis is one index, all behind it whole.
std::optional<std::pair<box, box>> halves(const dataset_description& d, const box& part, bool within_chunks) {
  std::size_t axis = 0;
  while (axis < part.rank && part.count[axis] < 2) ++axis;
  const auto cut = axis < part.rank ? cut_of(d, part, axis, within_chunks) : 0;
  if (cut == 0) return std::nullopt;
  auto first = part, second = part;
  first.count[axis] = cut - part.start[axis];
  second.start[axis] = cut;
  second.count[axis] = part.count[axis] - first.count[axis];
  return std::pair{first, second};
}

}  // namespace

stored_texts::stored_texts(read_world& world, const source_file& file, const open_dataset& dataset)
    : description_(std::make_shared<const dataset_description>(describe_dataset(dataset, text_form::references))) {
  const auto& d = *description_;
  auto info = d.info;  // of the references: nobody's to be told
  reader_ = open_reader(world, file, dataset, description_, info);
  format_ = address_format_of(file.id);
  // Not one of the world's: of these a thread holds one at a time, and the reader may need another file.
  file_ = std::make_unique<raw_file>(world.files[file.number].path, world.files[file.number].identity,
                                     world.opening ? nullptr : world.faults);
  heap_ = std::make_unique<global_heap>(*file_, file_->bytes(), format_, world.faults);
  positions_ = packed_strides(
      [&] {
        extents shape{};
        std::copy(d.info.shape.begin(), d.info.shape.end(), shape.begin());
        return shape;
      }(),
      d.rank, 1);
  most_at_once_ = std::min(most_at_once(d), std::max<std::uint64_t>(d.values(), 1));
  const auto sizes = reader_->memory(0).scratch;
  ask_for_memory(world.faults, memory_items::scratch, sizes.bytes() + most_at_once_ * d.value.bytes);
  scratch_ = std::make_unique<scratch>(sizes);
  references_.resize(most_at_once_ * d.value.bytes);
  if (!d.fill_text.empty() && d.fill_value.stored() != nullptr) fill_ = *d.fill_value.stored();
}

void stored_texts::visit(text_sink& to) {
  const auto& d = *description_;
  box all;
  all.rank = d.rank;
  std::copy(d.info.shape.begin(), d.info.shape.end(), all.count.begin());
  if (d.values() > 0) visit(all, to);
}

std::uint64_t stored_texts::position_of(const box& part) const noexcept {
  std::uint64_t position = 0;
  for (std::size_t k = 0; k < part.rank; ++k) position += part.start[k] * positions_[k];
  return position;
}

/// What is damaged is cut down to chunks.
void stored_texts::visit(const box& part, text_sink& to) {
  const auto& d = *description_;
  const auto each = [&](const std::pair<box, box>& cut) {
    visit(cut.first, to);
    visit(cut.second, to);
  };
  if (part.values() > most_at_once_) return each(*halves(d, part, true));
  const auto references = std::span(references_).first(part.values() * d.value.bytes);
  try {
    reader_->read({part, 0, references.data(), packed_strides(part.count, part.rank, d.value.bytes)}, *scratch_);
  } catch (const failure& e) {
    if (!e.damaged) throw;
    const bool small = d.info.layout != layout::chunked && part.values() <= together;
    const auto cut = small ? std::nullopt : halves(d, part, false);
    if (!cut) return to.damaged(position_of(part), part.values(), e.what());
    return each(*cut);
  }
  give(position_of(part), references, to);
}

void stored_texts::give(std::uint64_t position, std::span<const std::byte> references, text_sink& to) {
  const auto bytes = format_.reference_bytes();
  for (; !references.empty(); references = references.subspan(bytes), ++position) {
    const auto stored = references.first(bytes);
    const auto reference = decode_reference(stored, format_);
    if (reference.is_empty()) {
      to.empty(position);
    } else if (!fill_.empty() && std::ranges::equal(stored, fill_)) {
      to.fill(position, description_->fill_text);
    } else if (auto* const object = heap_->find(reference); object == nullptr) {
      to.damaged(position, 1, heap_->why());
    } else {
      try {
        to.stored(position, *object, *heap_);
      } catch (const failure& e) {
        if (!e.damaged) throw;
        to.damaged(position, 1, e.what());
      }
    }
  }
}

}  // namespace penstock::io
