#include <penstock/pipeline/source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {

source& source::field(std::string name, std::vector<io::location> segments, field_options options) & {
  if (mix_)
    throw std::invalid_argument(fmt::format("field '{}' is added to a mixed source; add it to its parts", name));
  if (name.empty()) throw std::invalid_argument("a field needs a name");
  if (std::any_of(fields_.begin(), fields_.end(), [&](const auto& f) { return f.name == name; }))
    throw std::invalid_argument(fmt::format("the source has a field '{}' already", name));
  if (segments.empty()) throw std::invalid_argument(fmt::format("field '{}' has no datasets", name));
  fields_.push_back({std::move(name), std::move(segments), options});
  return *this;
}

source&& source::field(std::string name, std::vector<io::location> segments, field_options options) && {
  return std::move(field(std::move(name), std::move(segments), options));
}

source& source::select(selection which) & {
  selected_ = selected_ ? *std::move(selected_) & which : std::move(which);
  return *this;
}

source&& source::select(selection which) && { return std::move(select(std::move(which))); }

source& source::damaged(damage_options options) & {
  if (options.mask.empty()) throw std::invalid_argument("the mask of damaged rows needs a name");
  if (options.as != type::float32 && options.as != type::float64 && options.as != type::uint8)
    throw std::invalid_argument(
        fmt::format("the mask of damaged rows is float32, float64 or uint8, not {}", name_of(options.as)));
  damaged_ = std::move(options);
  return *this;
}

source&& source::damaged(damage_options options) && { return std::move(damaged(std::move(options))); }

}  // namespace penstock::pipeline
