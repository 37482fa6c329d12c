// What people are told of a geometry.

#include "geometry.hpp"
#include "transport_sizes.hpp"

#include <fmt/format.h>

namespace penstock::pipeline {

namespace {

std::string block_as_asked_for(const transport_task& task, const geometry& g) {
  const std::size_t asked = task.wish.block_bytes;
  if (g.block_rows * task.row_bytes == asked) return "as asked for";
  return fmt::format("as asked for ({}), as far as rows and chunks allow", format_bytes(asked));
}

std::string slots_as_asked_for(std::size_t asked, std::size_t slots) {
  return slots == asked ? "as asked for" : fmt::format("the fewest that there can be; {} asked for", asked);
}

std::string readers_of(const transport_task& task, const geometry& g) {
  if (task.wish.threads) return fmt::format("{} {}: as asked for", g.threads, g.threads == 1 ? "reader" : "readers");
  if (g.most_threads == 1) return why_one_reader(g);
  return fmt::format("{} readers of at most {}, on {} processors{}: {}tried while running", g.threads, g.most_threads,
                     task.processors, task.decodes ? ", which decode" : "",
                     g.readers_cut_short ? "the host budget has no room for more; " : "");
}

}  // namespace

std::string why_one_reader(const geometry& g) {
  return fmt::format("1 reader: {}",
                     g.readers_cut_short ? "the host budget has no room for another" : "there is one processor");
}

std::vector<std::string> choices_of(const transport_task& task, const geometry& g) {
  const transport_options& wish = task.wish;
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "blocks of {} rows, {}: {}", g.block_rows, format_bytes(g.block_rows * task.row_bytes),
      !task.block_reason.empty()     ? task.block_reason
      : wish.block_bytes             ? block_as_asked_for(task, g)
      : gathers_rows_of_chunks(task) ? "as near to 16 MiB as budgets allow: rows come one by one, and a block decodes "
                                       "a chunk once for all of its own"
      : task.host                    ? "as near to 1 MiB as chunks, pool and budgets allow"
                  : "as near to 2 MiB as chunks, pool and budgets allow; smaller copies do not reach the link's rate"));
  if (g.slots)
    lines.push_back(fmt::format(
        "{} slots, {}: {}", g.slots, format_bytes(g.slots * g.slot_bytes),
        !task.slots_reason.empty() ? task.slots_reason
        : wish.slots               ? slots_as_asked_for(wish.slots, g.slots)
        : task.host && task.pooled ? "the pool and the next one, as far as the budget goes"
        : task.cache_bytes ? fmt::format("a few for each reader, within two thirds of the last-level cache ({})",
                                         format_bytes(task.cache_bytes))
                           : "a few for each reader, within what a last-level cache holds"));
  lines.push_back(readers_of(task, g));
  return lines;
}

}  // namespace penstock::pipeline
