#include "plot.hpp"

#include "../common/gnuplot.hpp"

#include <fmt/format.h>

#include <cmath>

namespace examples {
namespace {

/// A block of data with a line for each epoch that has the value, as a finite number; empty where none has.
std::string points_of(const std::vector<nlohmann::json>& epochs, const std::string& name) {
  std::string points;
  for (const auto& epoch : epochs)
    if (epoch.contains(name) && epoch.at(name).is_number() && std::isfinite(epoch.at(name).get<double>()))
      points += fmt::format("{} {}\n", epoch.at("epoch").dump(), epoch.at(name).dump());
  return points;
}

struct curve {
  std::string name;   ///< of the value
  std::string title;  ///< of the set
};

/// One panel: its curves, as far as there are values.
std::string panel(const std::vector<nlohmann::json>& epochs, const std::string& label, const std::vector<curve>& curves,
                  int& number) {
  std::string data, plot;
  for (const curve& each : curves) {
    const std::string points = points_of(epochs, each.name);
    if (points.empty()) continue;
    data += fmt::format("$line{} << ENDOFLINE\n{}ENDOFLINE\n", number, points);
    plot += fmt::format("{}$line{} with linespoints pointtype 7 pointsize 0.5 title {}", plot.empty() ? "plot " : ", ",
                        number, quoted_for_gnuplot(each.title));
    ++number;
  }
  return plot.empty() ? "" : fmt::format("{}set ylabel {}\n{}\n", data, quoted_for_gnuplot(label), plot);
}

}  // namespace

std::string plot_of(const std::vector<nlohmann::json>& epochs, const result_form& form, const std::string& title) {
  const std::string quality = form.of_values ? "rmse" : "accuracy", tested = form.testing_name;
  int number = 0;
  const std::string losses = panel(epochs, "loss", {{"loss", "train"}, {tested + "_loss", tested}}, number);
  const std::string qualities = panel(epochs, form.of_values ? "RMSE" : "accuracy",
                                      {{"train_" + quality, "train"}, {tested + "_" + quality, tested}}, number);
  return fmt::format(
      "set multiplot layout 1,2 title {}\nset grid\nset xlabel 'epoch'\nset key below\nset offsets 0.5, 0.5, 0, 0\n"
      "{}{}unset multiplot\n",
      quoted_for_gnuplot(title), losses, qualities);
}

}  // namespace examples
