#include "geometry.hpp"

#include "transport_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace penstock::pipeline {
namespace {

using namespace penstock::literals;

constexpr std::size_t field_alignment = 256;  // of a field in a slot: what the gather's vector loads need, and more
constexpr std::size_t least_straight_bytes = 64_KiB;  // smaller copies cost more to issue than their part of a gather
constexpr std::ptrdiff_t most_small_copies = 3;       // beside a large one, that cost less than a gather for them
// For the consumer, the thread that drives the device, and what the system does.
constexpr std::size_t spare_processors = 3;
// Copies go on while a gather waits for the consumer's kernels to leave the device: 0.7 ms of a fast link.
constexpr std::size_t good_images_bytes = 32_MiB, good_images = 32;
// That are drawn from a pool together. What draws them keeps the consumer's kernels from the device, and few rows for
// hardly less time than many.
constexpr std::uint64_t piece_blocks = 4;

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

/// Beyond any memory all sizes are alike, and their sums stay within 64 bits.
std::size_t bytes_of(std::uint64_t count, std::size_t each) {
  constexpr std::size_t most = std::size_t{1} << 56;
  return each > 0 && count > most / each ? most : count * each;
}

/// One choice of block size with the bounds of the other sizes.
struct candidate {
  geometry sizes;  // block_rows and the slot's layout; counts are set by take()
  std::uint64_t window_blocks = 1;
  std::size_t least_slots = 0, good_slots = 0;
  std::size_t least_images = 0, fair_images = 0, good_images = 0;
  std::uint64_t least_ring = 0, fair_ring = 0, good_ring = 0;
  bool is_cut_short = false;  // blocks are smaller, or readers fewer, than without a budget
};

/// Which conversions go past the gather, and where the other fields lie in a slot: first what is copied at once, then
/// what is copied field by field, then what stays on the host.
void lay_out(const wiring& w, const transport_task& task, geometry& g) {
  g.straight.assign(w.conversions.size(), false);
  g.host_offsets.assign(w.host.size(), none);
  g.lands_in_ring = false;
  const auto may_go = [&](const conversion& how) { return how.plain && w.device[how.to].in_ring && !task.pooled; };
  const auto is_small = [&](const conversion& how) {
    return w.host[how.from].row_bytes() * g.block_rows < least_straight_bytes;
  };
  const std::ptrdiff_t small = std::ranges::count_if(w.conversions, is_small);
  const bool needs_no_gather = !w.needs_device_work() && std::ranges::all_of(w.conversions, may_go) &&
                               small <= most_small_copies && small < std::ssize(w.conversions);
  for (std::size_t c = 0; c < w.conversions.size(); ++c) {
    const conversion& how = w.conversions[c];
    if (task.host ? w.host_transforms.empty() : needs_no_gather || !is_small(how)) g.straight[c] = may_go(how);
  }
  std::size_t end = 0;
  const auto place = [&](std::size_t field) {
    g.host_offsets[field] = end;
    end += align_up(w.host[field].row_bytes() * g.block_rows, field_alignment);
  };
  for (std::size_t c = 0; c < w.conversions.size(); ++c)
    if (!g.straight[c]) place(w.conversions[c].from);
  g.image_bytes = end;
  for (std::size_t c = 0; c < w.conversions.size(); ++c) {
    if (!g.straight[c]) continue;
    if (task.host)
      g.lands_in_ring = true;
    else
      place(w.conversions[c].from);
  }
  for (std::size_t field = 0; field < w.host.size(); ++field)
    if (!w.host[field].travels) place(field);
  g.slot_bytes = end;
  g.needs_only_reading = g.lands_in_ring && g.slot_bytes == 0 && !w.needs_device_work();
}

/// Blocks whose rows are given back together. Each step costs the consumer's thread locks, and on a device an event:
/// where it launches small kernels, one after another, it has no time for many.
std::uint64_t step_blocks(std::size_t batch_rows, std::size_t block_rows, bool host) {
  constexpr std::size_t many_batches = 8, blocks = 4;
  return !host && batch_rows * many_batches <= block_rows ? blocks : 1;
}

/// Rows need no place of their own, of one block, between what draws them and the ring.
bool comes_out_finished(const wiring& w) {
  return std::all_of(w.device.begin(), w.device.end(), [](const device_field& f) { return f.in_ring; });
}

candidate make_candidate(const wiring& w, const transport_task& task, std::size_t block_rows, std::size_t threads,
                         std::size_t most_threads = 0) {
  candidate c;
  geometry& g = c.sizes;
  g.block_rows = block_rows;
  g.threads = threads;
  g.most_threads = std::max(threads, most_threads);
  lay_out(w, task, g);
  c.window_blocks = g.blocks_of(task.pooled ? task.window_rows : block_rows);
  const std::size_t batch = task.batch_rows;
  g.quantum_rows = batch >= block_rows ? batch : step_blocks(batch, block_rows, task.host) * block_rows / batch * batch;

  const bool slots = g.slot_bytes > 0, images = !task.host && g.image_bytes > 0;
  if (slots && task.host && task.pooled) {
    c.least_slots = c.window_blocks;
    c.good_slots = 2 * c.window_blocks;
  } else if (slots) {
    c.least_slots = 2;
    c.good_slots =
        std::clamp(good_slots_bytes(task) / std::max<std::size_t>(g.slot_bytes, 1), threads + 4, 2 * threads + 6);
  }
  if (images) {
    c.least_images = task.pooled ? c.window_blocks : 1;
    c.fair_images = task.pooled ? 2 * c.window_blocks : 4;
    c.good_images = std::max(c.fair_images, std::min(good_images_bytes / g.image_bytes, good_images));
  }
  const std::uint64_t view = (task.held + 1) * batch, landing = g.lands_in_ring ? block_rows : 0;
  c.least_ring = round_up(view + batch + landing, batch);
  c.fair_ring = round_up(view + g.quantum_rows + landing + block_rows, batch);
  const std::uint64_t ahead = g.lands_in_ring ? (2 * threads + 2) * block_rows : 8 * block_rows;
  c.good_ring = round_up(view + std::max<std::uint64_t>(g.quantum_rows + ahead, 2 * batch), batch);
  // A ring of whole blocks is not cut in the middle of one.
  if (const std::uint64_t both = std::lcm<std::uint64_t>(batch, block_rows); both <= c.good_ring / 2)
    c.good_ring = round_up(c.good_ring, both);
  if (task.wish.slots && slots) c.least_slots = c.good_slots = std::max(task.wish.slots, c.least_slots);
  c.is_cut_short = block_rows < block_sizes(w, task).front() || threads < wished_threads(task);
  return c;
}

/// The candidate with these counts, and the ledger of it.
geometry take(const candidate& c, const wiring& w, const transport_task& task, std::size_t slots, std::size_t images,
              std::uint64_t ring_rows) {
  using kind = gpu::memory_kind;
  geometry g = c.sizes;
  g.slots = slots;
  g.images = task.host ? slots : images;
  g.ring_rows = ring_rows;
  const std::uint64_t spare = ring_rows - (task.held + 1) * task.batch_rows - (g.lands_in_ring ? g.block_rows : 0);
  g.quantum_rows =
      std::max<std::uint64_t>(std::min(g.quantum_rows, spare / task.batch_rows * task.batch_rows), task.batch_rows);
  // On the host, where it is one of the readers, the consumer's processor is its own.
  g.watchful = task.host ? g.needs_only_reading && task.processors >= std::max<std::size_t>(2, g.threads)
                         : task.processors >= g.threads + spare_processors;
  g.piece_rows = g.block_rows;
  const std::uint64_t together = piece_blocks * g.block_rows;
  if (!task.host && task.pooled && comes_out_finished(w) && spare >= g.quantum_rows + together) g.piece_rows = together;
  g.whole_pieces = !task.host && spare >= g.quantum_rows + g.piece_rows;
  g.slots_cut_short = c.is_cut_short || slots < c.good_slots;
  g.ring_cut_short = c.is_cut_short || ring_rows < c.good_ring;
  g.readers_cut_short = g.most_threads < most_threads(task, wished_threads(task));
  for (const std::size_t field : w.batch)
    g.ledger.add(kind::device, ring_item(w.device[field]), bytes_of(ring_rows, w.device[field].row_bytes()),
                 fmt::format("{} rows of {}", ring_rows, format_bytes(w.device[field].row_bytes())));
  for (std::size_t field = 0; field < w.device.size(); ++field)
    if (!w.device[field].in_ring)
      g.ledger.add(kind::device, piece_item(w, field), bytes_of(g.block_rows, w.device[field].row_bytes()),
                   "between transforms, one block");
  if (!task.host && images)
    g.ledger.add(kind::device, task.pooled ? pool_item : staging_item, bytes_of(images, g.image_bytes),
                 fmt::format("{} blocks of {}", images, format_bytes(g.image_bytes)));
  if (slots) {
    const bool is_pool = task.host && task.pooled;
    g.ledger.add(is_pool ? kind::device : kind::pinned, is_pool ? pool_item : slots_item, bytes_of(slots, g.slot_bytes),
                 fmt::format("{} blocks of {}", slots, format_bytes(g.slot_bytes)));
  }
  if (task.masked) g.ledger.add(kind::device, mask_item, 2 * task.batch_rows, "ones, then zeros");
  for (const io::memory_item& item : task.reader_memory(g.most_threads))
    g.ledger.add(kind::host, item.name, item.bytes);
  return g;
}

geometry least(const candidate& c, const wiring& w, const transport_task& task) {
  return take(c, w, task, c.least_slots, c.least_images, c.least_ring);
}

/// The largest value in [least, good] for which `fits` holds; fits(least) holds, and fits is monotonous.
template <class Integer, class Fits>
Integer largest(Integer least, Integer good, Integer step, Fits fits) {
  if (good <= least || fits(good)) return std::max(least, good);
  Integer low = 0, high = (good - least) / step;  // fits(least + low * step), not fits(least + high * step) or beyond
  while (high - low > 1) {
    const Integer middle = low + (high - low) / 2;
    (fits(static_cast<Integer>(least + middle * step)) ? low : high) = middle;
  }
  return least + low * step;
}

/// Grows the candidate within the budget: the pool or staging first, then slots, then the ring, then what lets copies
/// run further ahead.
std::optional<geometry> grow(const candidate& c, const wiring& w, const transport_task& task, const auto& fits) {
  std::size_t slots = c.least_slots, images = c.least_images;
  std::uint64_t ring = c.least_ring;
  const auto sized = [&] { return take(c, w, task, slots, images, ring); };
  if (!fits(sized())) return std::nullopt;
  ring = largest<std::uint64_t>(c.least_ring, c.fair_ring, task.batch_rows,
                                [&](std::uint64_t n) { return fits(take(c, w, task, slots, images, n)); });
  images = largest<std::size_t>(c.least_images, c.fair_images, 1,
                                [&](std::size_t n) { return fits(take(c, w, task, slots, n, ring)); });
  slots = largest<std::size_t>(c.least_slots, c.good_slots, 1,
                               [&](std::size_t n) { return fits(take(c, w, task, n, images, ring)); });
  if (c.good_ring > ring)
    ring = largest<std::uint64_t>(ring, c.good_ring, task.batch_rows,
                                  [&](std::uint64_t n) { return fits(take(c, w, task, slots, images, n)); });
  images = largest<std::size_t>(images, c.good_images, 1,
                                [&](std::size_t n) { return fits(take(c, w, task, slots, n, ring)); });
  return sized();
}

/// As many readers as may be tried, as far as what they take fits.
geometry with_most_threads(geometry g, std::size_t most, const wiring& w, const transport_task& task,
                           const auto& fits) {
  const auto sized = [&](std::size_t n) {
    return take(make_candidate(w, task, g.block_rows, g.threads, n), w, task, g.slots, g.images, g.ring_rows);
  };
  return sized(largest<std::size_t>(g.threads, most, 1, [&](std::size_t n) { return fits(sized(n)); }));
}

bool is_comfortable(const candidate& c, const geometry& g) {
  return g.ring_rows >= c.fair_ring &&
         g.slots >= std::min<std::size_t>(c.good_slots, std::max<std::size_t>(4, c.good_slots / 2)) &&
         g.images >= std::min(c.fair_images, std::max<std::size_t>(c.least_images + 1, c.fair_images * 3 / 4));
}

/// Without its pool, or with a small one, the plan would fit on the device.
bool pool_is_too_large(const gpu::ledger& items, const gpu::budget& limits) {
  const std::size_t total = items.total(gpu::memory_kind::device);
  return total > limits.device_bytes && std::ranges::any_of(items.items(), [&](const auto& item) {
           return item.kind == gpu::memory_kind::device && item.name == pool_item &&
                  item.bytes >= total - limits.device_bytes;
         });
}

}  // namespace

std::string ring_item(const device_field& field) { return fmt::format("pipeline: ring of {}", field.name); }

std::string piece_item(const wiring& w, std::size_t field) {
  return fmt::format("pipeline: {} between transforms ({})", w.device[field].name, field);
}

geometry repeat_geometry(const wiring& w, const transport_task& task, const pipeline_plan& plan) {
  return take(make_candidate(w, task, plan.block_rows, plan.threads, plan.most_threads), w, task, plan.slots,
              plan.images, plan.ring_rows);
}

geometry smallest_geometry(const wiring& w, const transport_task& task) {
  std::optional<geometry> smallest;
  for (const std::size_t rows : block_sizes(w, task)) {
    geometry g = least(make_candidate(w, task, rows, task.wish.threads ? task.wish.threads : 1), w, task);
    const auto total = [](const geometry& x, gpu::memory_kind kind) { return x.ledger.total(kind); };
    const auto device = gpu::memory_kind::device, pinned = gpu::memory_kind::pinned;
    if (!smallest || total(g, device) < total(*smallest, device) ||
        (total(g, device) == total(*smallest, device) && total(g, pinned) < total(*smallest, pinned)))
      smallest = std::move(g);
  }
  return *smallest;
}

geometry plan_geometry(const wiring& w, const transport_task& task, const gpu::budget& limits,
                       const gpu::ledger& taken) {
  const auto fits = [&](const geometry& g) {
    return std::all_of(gpu::memory_kinds.begin(), gpu::memory_kinds.end(), [&](gpu::memory_kind kind) {
      return g.ledger.total(kind) + taken.total(kind) <= limits.of(kind);
    });
  };
  for (std::size_t threads = wished_threads(task); threads >= 1; threads = threads > 1 ? threads / 2 : 0) {
    std::optional<geometry> fallback;
    for (const std::size_t rows : block_sizes(w, task)) {
      const candidate c = make_candidate(w, task, rows, threads);
      std::optional<geometry> g = grow(c, w, task, fits);
      if (g && is_comfortable(c, *g)) return with_most_threads(*g, most_threads(task, threads), w, task, fits);
      if (g && !fallback) fallback = std::move(g);
    }
    if (fallback) return with_most_threads(*fallback, most_threads(task, threads), w, task, fits);
    if (task.wish.threads) break;
  }
  gpu::ledger all = taken;
  const geometry smallest = smallest_geometry(w, task);
  all.add(smallest.ledger);
  gpu::budget needed = limits;
  for (const gpu::memory_kind kind : gpu::memory_kinds) needed.of(kind) = all.total(kind);
  throw gpu::budget_error(pool_is_too_large(all, limits)
                              ? "the pipeline does not fit its budget; a shuffled order with lower run_rows and "
                                "pool_rows holds less"
                              : "the pipeline does not fit its budget",
                          all, limits, needed);
}

}  // namespace penstock::pipeline
