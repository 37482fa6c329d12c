#include "flow.hpp"
#include "opened_impl.hpp"
#include "pipeline_impl.hpp"
#include "price_order.hpp"
#include "supply_rows.hpp"
#include "take_host_memory.hpp"
#include "transport_sizes.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

io::read_resources resources(const io::row_reader& reader, std::size_t threads, std::size_t row_bytes,
                             const order& rows, const transport_options& wish) {
  // Two chunks more than reads at once: what one block cuts is there for the next. Chunks that are taller than any
  // block are cut by many blocks, but those that are read at a time lie close together, unless runs are shorter than
  // chunks: then each read is in one of its own.
  std::uint64_t cut = threads + 2;
  const std::uint64_t chunk_bytes = reader.cut_rows() * row_bytes;
  if (chunk_bytes > most_chunk_block_bytes && rows.run_rows() > 0 && rows.run_rows() < reader.cut_rows()) {
    cut = threads + 1;
  } else if (chunk_bytes > most_chunk_block_bytes) {
    const std::uint64_t block_bytes = std::max<std::uint64_t>(wish.block_bytes, largest_block_bytes);
    cut = std::min<std::uint64_t>(cut, (2 * threads + 6) * block_bytes / chunk_bytes + 2);
  }
  return {threads, reader.cut_bytes() * cut};
}

/// For people: "field x: 700 segments: 3 locked (virtual), 697 direct (contiguous)". What holds no row is read no way.
std::string access_of(const std::string& field, const io::row_reader& reader) {
  constexpr std::size_t most_ways = 4;
  struct way_of_some {
    io::access access;
    std::string text;
    std::size_t segments;
  };
  std::vector<way_of_some> ways;
  for (const io::row_reader::segment& part : reader.segments()) {
    if (part.rows == 0 && reader.rows() > 0) continue;
    std::string text = fmt::format("{} ({})", io::name_of(part.info.access), part.info.reason);
    const auto known = std::ranges::find(ways, text, &way_of_some::text);
    if (known == ways.end())
      ways.push_back({part.info.access, std::move(text), 1});
    else
      ++known->segments;
  }
  const std::size_t all = reader.segments().size();
  std::string line = fmt::format("field {}: {} segment{}", field, all, all == 1 ? "" : "s");
  if (ways.size() == 1) return line + ", " + ways.front().text;
  // The slow ones first: they are what one wants to know of.
  std::ranges::stable_partition(ways, [](const way_of_some& way) { return way.access == io::access::locked; });
  for (std::size_t n = 0; n < std::min(ways.size(), most_ways); ++n)
    line += fmt::format("{} {} {}", n == 0 ? ":" : ",", ways[n].segments, ways[n].text);
  if (ways.size() > most_ways) line += fmt::format(", and {} more ways", ways.size() - most_ways);
  return line;
}

/// Of a row as it goes to the device: read, or made of that on the host.
std::size_t travelling_row_bytes(const wiring& w) {
  std::size_t bytes = 0;
  for (const conversion& how : w.conversions) bytes += w.host[how.from].row_bytes();
  return bytes;
}

}  // namespace

/// Whether most bytes of a row come out of decoders.
bool opened::impl::decodes() const {
  std::size_t decoded = 0, all = 0;
  for (const io::row_reader& reader : readers) {
    all += reader.row_bytes();
    if (std::ranges::any_of(reader.segments(), [](const auto& s) { return !s.info.filters.empty(); }))
      decoded += reader.row_bytes();
  }
  return 2 * decoded > all;
}

/// Whether most bytes of a row come from a disk, past the page cache, and are given as they are.
bool opened::impl::waits_for_disk() const {
  std::size_t waited = 0, all = 0;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    all += readers[i].row_bytes();
    const bool plain = std::ranges::all_of(readers[i].segments(), [](const auto& s) {
      return s.info.access == io::access::direct && s.info.filters.empty();
    });
    if (plain && parts->from.fields()[i].options.around_page_cache) waited += readers[i].row_bytes();
  }
  return 2 * waited > all;
}

transport_task opened::impl::task(gpu::device d, const transport_options& wish) const {
  transport_task t;
  t.host = d.is_host();
  t.pooled = rows.is_pooled();
  t.rows = rows.rows();
  t.row_bytes = shape.row_bytes;
  t.window_rows = rows.window_rows();
  t.run_rows = rows.run_rows();
  t.chunk_rows = shape.chunk_rows;
  for (const decoded_field& field : shape.decoded) t.chunk_rows = std::max(t.chunk_rows, field.chunk_rows);
  t.batch_rows = parts->batch.rows;
  t.held = parts->batch.held;
  t.masked = parts->batch.last == last_batch::pad;
  t.processors = gpu::processors();
  t.decodes = decodes();
  t.cache_bytes = static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  t.waits_for_disk = waits_for_disk();
  t.wish = wish;
  t.block_reason = parts->block_reason;
  t.slots_reason = parts->slots_reason;
  t.reader_memory = [this, wish](std::size_t threads) {
    std::vector<io::memory_item> items;
    for (std::size_t i = 0; i < readers.size(); ++i)
      for (io::memory_item item : readers[i].memory(resources(readers[i], threads, shape.row_bytes, rows, wish)))
        items.push_back({fmt::format("io: {} of {}", item.name, parts->from.fields()[i].name), item.bytes});
    const auto held = memory_of(supply, parts->how, shape.rows);
    items.insert(items.end(), held.begin(), held.end());
    if (parts->trace.bytes) items.push_back({memory_items::trace, parts->trace.bytes});
    return items;
  };
  return t;
}

pipeline_plan opened::impl::plan(gpu::device d, const gpu::budget& limits, const gpu::ledger& taken,
                                 const transport_options& wish) const {
  return describe(d, plan_geometry(fields(d), task(d, wish), limits, taken), wish);
}

pipeline_plan opened::impl::describe(gpu::device d, const geometry& g, const transport_options& wish) const {
  pipeline_plan plan;
  plan.device = d;
  plan.rows = rows.rows();
  plan.batch_rows = parts->batch.rows;
  plan.held_batches = parts->batch.held;
  plan.block_rows = g.block_rows;
  plan.slot_bytes = g.slot_bytes;
  plan.slots = g.slots;
  plan.images = g.images;
  plan.ring_rows = g.ring_rows;
  plan.threads = g.threads;
  plan.most_threads = g.most_threads;
  plan.choices = choices_of(task(d, wish), g);
  for (const host_transform& transform : parts->host_transforms)
    if (const std::size_t most = flow_workers(g.threads), asked = transform.options.concurrency; asked > most)
      plan.choices.insert(
          plan.choices.end() - 1,  // readers come last
          fmt::format("{}: {} of the {} blocks at once that were asked for, as there are {}", transform.options.name,
                      most, asked, most < g.threads ? "no more processors" : "no more threads that read"));
  plan.order = rows.description();
  plan.fields = shapes;
  if (parts->from.damaged().policy == damage_policy::skip) plan.damage_mask = parts->from.damaged().mask;
  for (std::size_t i = 0; i < readers.size(); ++i)
    plan.field_reports.push_back(access_of(parts->from.fields()[i].name, readers[i]));
  plan.ledger = g.ledger;
  return plan;
}

opened::opened(std::unique_ptr<impl> inner) noexcept : impl_(std::move(inner)) {}
opened::opened(opened&&) noexcept = default;
opened& opened::operator=(opened&&) noexcept = default;
opened::~opened() = default;

pipeline description::build(gpu::device d, const gpu::budget& limits) const {
  opened source = open();
  const pipeline_plan plan = source.plan(d, limits);
  auto memory = std::make_shared<gpu::memory>(d, plan.ledger, parts_->faults);
  return std::move(source).build(plan, std::move(memory));
}

std::uint64_t opened::rows() const noexcept { return impl_->rows.rows(); }
const std::vector<field_shape>& opened::fields() const noexcept { return impl_->shapes; }
const order& opened::row_order() const noexcept { return impl_->rows; }

order_price opened::price(const std::string& class_field) const {
  const order& rows = impl_->rows;
  order_price price;
  if (rows.is_pooled()) price.pool_bytes = rows.window_rows() * travelling_row_bytes(impl_->on_cuda);
  for (const auto& item : memory_of(impl_->supply, impl_->parts->how, impl_->shape.rows))
    price.table_bytes += item.bytes;
  price.read_amplification = read_amplification(rows, impl_->readers);
  price.batches_of_one_source = batches_of_one_source(rows, impl_->supply, impl_->parts->batch.rows);
  if (class_field.empty()) return price;
  row_classes known =
      classes_of(impl_->parts->from, class_field, "mixing is measured by", nullptr, impl_->parts->faults);
  for (std::uint64_t row = 0; impl_->supply.only && row < known.of_row.size(); ++row)
    if (!impl_->supply.only->contains(row)) known.of_row[row] = no_class;
  price.mixing = mixing(rows, known.of_row, impl_->parts->batch.rows);
  return price;
}

pipeline_plan opened::plan(gpu::device d, const gpu::budget& limits, const gpu::ledger& taken) const {
  return impl_->plan(d, limits, taken, impl_->parts->transport);
}

pipeline_plan opened::smallest_plan(gpu::device d) const {
  const transport_options& wish = impl_->parts->transport;
  return impl_->describe(d, smallest_geometry(impl_->fields(d), impl_->task(d, wish)), wish);
}

std::shared_ptr<ground> opened::impl::stand_on(const pipeline_plan& plan, std::shared_ptr<gpu::memory> memory,
                                               const transport_options& wish) {
  using kind = gpu::memory_kind;
  if (memory->device() != plan.device)
    throw std::invalid_argument(
        fmt::format("the plan is for {}, the memory on {}", plan.device.name(), memory->device().name()));
  const transport_task task = this->task(plan.device, wish);
  auto on = std::make_shared<ground>(
      ground{.parts = parts, .fields = fields(plan.device), .rows = rows, .memory = memory, .plan = plan});
  on->sizes = repeat_geometry(on->fields, task, plan);
  on->tries_readers = on->sizes.most_threads > 1 && wish.threads == 0;
  on->readers = std::move(readers);
  for (io::row_reader& reader : on->readers)
    reader.reserve(resources(reader, on->sizes.most_threads, shape.row_bytes, rows, wish));

  for (std::size_t field = 0; field < on->fields.device.size(); ++field) {
    const device_field& what = on->fields.device[field];
    const auto bytes = memory->at(kind::device, what.in_ring ? ring_item(what) : piece_item(on->fields, field));
    on->rings.emplace_back(bytes.data(), what.in_ring ? plan.ring_rows : plan.block_rows, what.row_bytes());
  }
  if (parts->from.damaged().policy == damage_policy::skip)
    on->damage = std::make_shared<damage_log>(parts->from.damaged());
  const bool host = plan.device.is_host();
  if (plan.slots)
    on->slots = {host && task.pooled ? memory->at(kind::device, pool_item) : memory->at(kind::pinned, slots_item),
                 on->sizes.slot_bytes, plan.slots};
  if (host)
    on->images = on->slots;
  else if (plan.images)
    on->images = {memory->at(kind::device, task.pooled ? pool_item : staging_item), on->sizes.image_bytes, plan.images};
  if (task.masked) {
    std::byte* mask = memory->at(kind::device, mask_item).data();
    const gpu::stream setup(plan.device, false, parts->faults);
    gpu::fill(setup, mask, 1, task.batch_rows);
    gpu::fill(setup, mask + task.batch_rows, 0, task.batch_rows);
    setup.synchronize();
    on->mask = reinterpret_cast<const std::uint8_t*>(mask);
  }
  return on;
}

pipeline opened::build(const pipeline_plan& plan, std::shared_ptr<gpu::memory> memory) && {
  return pipeline(std::make_unique<pipeline::impl>(impl_->stand_on(plan, std::move(memory), impl_->parts->transport)));
}

const std::vector<std::string>& pipeline::class_names(std::string_view field) const noexcept {
  static const std::vector<std::string> no_names;
  const auto& fields = impl_->on->parts->from.fields();
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == field) return impl_->on->readers[i].class_names();
  return no_names;
}

std::size_t ground::conversion_from(std::size_t host_field) const noexcept {
  for (std::size_t c = 0; c < fields.conversions.size(); ++c)
    if (fields.conversions[c].from == host_field) return c;
  return none;
}

}  // namespace penstock::pipeline
