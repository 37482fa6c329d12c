#include "program.hpp"

#include <fmt/format.h>
#include <penstock/bytes.hpp>
#include <penstock/error.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace examples {

int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& work) {
  try {
    app.parse(argc, argv);
    work();
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help comes this way too
    fmt::print(stderr, "{}: {}; --help shows what there is\n", app.get_name(), e.what());
    return 2;
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 1;
  }
}

CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes, const std::string& help) {
  const auto parse = [&bytes, name](const std::string& text) {
    try {
      bytes = penstock::parse_bytes(text);
    } catch (const std::invalid_argument& e) {
      throw CLI::ValidationError(name, e.what());
    }
  };
  return app.add_option_function<std::string>(name, parse, help)
      ->type_name("BYTES")
      ->default_str(penstock::format_bytes(bytes));
}

void write_json(const std::string& path, const nlohmann::json& value) {
  const std::string unfinished = path + ".part";
  std::ofstream out(unfinished, std::ios::trunc);
  out << value.dump(2) << '\n';
  out.close();
  std::error_code failure;
  if (out) std::filesystem::rename(unfinished, path, failure);
  if (!out || failure) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw std::runtime_error(
        fmt::format("{}: the results could not be written; is the folder there, and writable?", path));
  }
}

}  // namespace examples
