#pragma once

#include <penstock/pipeline/damage.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <string>

namespace examples {

/// "stop", "skip" or "skip:LIMIT". Throws CLI::ValidationError.
inline penstock::pipeline::damage_options parse_damaged(const std::string& text) {
  using penstock::pipeline::damage_policy;
  penstock::pipeline::damage_options options;
  if (text == "stop") return options;
  options.policy = damage_policy::skip;
  if (text == "skip") return options;
  const char* const end = text.data() + text.size();
  if (text.starts_with("skip:") && text.size() > 5) {
    const auto read = std::from_chars(text.data() + 5, end, options.limit_rows);
    if (read.ec == std::errc() && read.ptr == end) return options;
  }
  throw CLI::ValidationError("--damaged", fmt::format("'{}' is none of stop, skip and skip:ROWS, as skip:1000", text));
}

/// The option --damaged, which says what becomes of rows that are damaged in their files; `then` ends its help.
inline CLI::Option* add_damaged_option(CLI::App& app, penstock::pipeline::damage_options& options,
                                       const std::string& then) {
  return app
      .add_option_function<std::string>(
          "--damaged", [&options](const std::string& text) { options = parse_damaged(text); },
          "Rows that are damaged in their files: stop is an error; skip:ROWS lets up to so many be left out (skip: "
          "1000): " +
              then)
      ->default_str("stop");
}

}  // namespace examples
