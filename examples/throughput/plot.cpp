#include "../common/gnuplot.hpp"
#include "results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace examples {
namespace {

/// "penstock /x shuffled".
std::string title_of(const figure& f) {
  return fmt::format("{} {}{}{}", f.reader, f.dataset, f.order.empty() ? "" : " ", f.order);
}

std::string limit_line(const char* title, double bytes_per_second, double top) {
  return fmt::format(", {} with lines dashtype 2 linecolor rgb 'gray40' title '{} ({:.1f} GB/s{})'",
                     bytes_per_second / 1e9, title, bytes_per_second / 1e9,
                     bytes_per_second > top ? ", above the picture" : "");
}

/// What rows that already lie on the device reach with large batches is no rate of a link: it does not set the scale.
double largest_of(const results& all, const penstock::pipeline::machine_limits& limits) {
  double most = 0;
  for (const figure& f : all.figures)
    if (f.reader != "resident") most = std::max(most, f.bytes_per_second);
  return std::max(most, limits.link_bytes_per_second.value_or(limits.storage_bytes_per_second.value_or(0)));
}

}  // namespace

std::string plot_of(const results& all) {
  // Of a point that several results hold, the first counts.
  std::map<std::string, std::map<std::size_t, double>> lines;
  for (const figure& f : all.figures) lines[title_of(f)].emplace(f.batch_rows, f.bytes_per_second);
  std::string script, plot;
  for (std::size_t number = 0; const auto& [title, points] : lines) {
    script += fmt::format("$line{} << ENDOFLINE\n", number);
    for (const auto& [rows, rate] : points) script += fmt::format("{} {}\n", rows, rate / 1e9);
    script += "ENDOFLINE\n";
    plot += fmt::format("{}$line{} with linespoints pointtype 7 title {}", number == 0 ? "plot " : ", ", number,
                        quoted_for_gnuplot(title));
    ++number;
  }
  const auto limits = common_limits(all);
  const double top = 1.15 * largest_of(all, limits);
  if (limits.storage_bytes_per_second) plot += limit_line("storage", *limits.storage_bytes_per_second, top);
  if (limits.link_bytes_per_second) plot += limit_line("link", *limits.link_bytes_per_second, top);
  return fmt::format(
      "{}set title {}\nset logscale x 2\nset yrange [0:{}]\nset grid\nset xlabel 'rows of a batch' offset 0,0.4\n"
      "set ylabel 'GB/s'\nset key below\n{}\n",
      script, quoted_for_gnuplot(all.device), top / 1e9, plot);
}

}  // namespace examples
