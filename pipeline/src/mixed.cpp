#include <penstock/pipeline/mixed.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const field_options& a, const field_options& b) {
  return a.as == b.as && same(a.scale, b.scale) && same(a.shift, b.shift) && a.netcdf == b.netcdf &&
         same(a.masked, b.masked) && a.allow_missing_sources == b.allow_missing_sources &&
         a.around_page_cache == b.around_page_cache;
}

std::string names_of(const source& from) {
  std::string names;
  for (const auto& field : from.fields()) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

void check(const std::vector<source_share>& parts) {
  if (parts.empty()) throw std::invalid_argument("a mix needs at least one source");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!std::isfinite(parts[i].ratio) || parts[i].ratio <= 0)
      throw std::invalid_argument(
          fmt::format("source {} of a mix has the ratio {}; ratios are above 0", i + 1, parts[i].ratio));
    if (parts[i].from.mix())
      throw std::invalid_argument(fmt::format(
          "source {} of a mix is mixed itself; give its sources, with their ratios, beside the others", i + 1));
    if (parts[i].from.damaged().policy != damage_policy::stop)
      throw std::invalid_argument(fmt::format(
          "source {} of a mix says what becomes of damaged rows; say it of the mixed source instead", i + 1));
    if (parts[i].from.fields().empty())
      throw std::invalid_argument(fmt::format("source {} of a mix has no fields", i + 1));
  }
}

/// The field of that name in a part; it must be read as the first part's is.
const source::field_description& counterpart(const source::field_description& field,
                                             const std::vector<source_share>& parts, std::size_t part) {
  const auto& fields = parts[part].from.fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == field.name; });
  if (found == fields.end() || fields.size() != parts.front().from.fields().size())
    throw std::invalid_argument(
        fmt::format("sources that are mixed need the same fields; the first has {}, and number {} {}",
                    names_of(parts.front().from), part + 1, names_of(parts[part].from)));
  if (!same(found->options, field.options))
    throw std::invalid_argument(
        fmt::format("field '{}' of source {} of a mix has other options than in the first source; give both the same",
                    field.name, part + 1));
  return *found;
}

}  // namespace

source mixed(std::vector<source_share> parts, mix_options how) {
  check(parts);
  source joined;
  for (const auto& field : parts.front().from.fields()) {
    auto segments = field.segments;
    for (std::size_t part = 1; part < parts.size(); ++part) {
      const auto& more = counterpart(field, parts, part).segments;
      segments.insert(segments.end(), more.begin(), more.end());
    }
    joined.field(field.name, std::move(segments), field.options);
  }
  joined.mix_ = std::make_shared<const mixture>(mixture{std::move(parts), how});
  return joined;
}

}  // namespace penstock::pipeline
