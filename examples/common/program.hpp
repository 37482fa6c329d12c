#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace examples {

/// Parses the command line and does the work; what goes wrong becomes one message on the error output and the exit
/// code: 1 where work failed, 2 where the program was used wrongly.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& work);

/// An option that takes bytes: "512MiB", "1.5 GB", "4096".
CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes, const std::string& help);

/// Writes `value` to `path`, which holds all of it or is left as it was.
void write_json(const std::string& path, const nlohmann::json& value);

}  // namespace examples
