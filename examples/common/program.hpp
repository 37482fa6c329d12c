#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "input_files.hpp"

namespace examples {

/// A signal ended the work before it was done.
class interrupted : public std::runtime_error {
 public:
  interrupted(int signal, const std::string& sentence) : std::runtime_error(sentence), signal_(signal) {}
  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

/// Parses the command line and does the work; what goes wrong becomes one message on the error output and the exit
/// code: 2 where the command line is wrong (std::invalid_argument), 128 + N where signal N ended the work
/// (interrupted), 1 where anything else failed. Standard input, output and errors that are closed become /dev/null.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& work);

/// What main() returns. Where memory is limited (ulimit -v, -d), it ends the program here: OpenBLAS has threads that
/// wait for memory without end, and whoever ends a program in the ordinary way waits for them.
int end_program(int code);

/// For options that count: refuses what is below `least`, or above `most`: by default what times the bytes of a row
/// stays within 64 bits.
CLI::Validator at_least(std::uint64_t least, std::uint64_t most = std::uint64_t{1} << 40);

/// An option that takes bytes: "512MiB", "1.5 GB", "4096".
CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes, const std::string& help);

/// What a file for results will be. HDF5 may replace HDF5, and its writer says which; nothing else does.
enum class output : std::uint8_t { other, hdf5 };

/// Refuses a file for results, named by `option`, that could not be written (a file beside it is made, and removed),
/// that is one of `inputs`, or that would replace an HDF5 file by what is none, before any work is done.
void check_output(const char* option, const std::string& file, const input_files& inputs, output kind = output::other);

/// An option and the file that it names; empty: none.
struct named_file {
  const char* option;
  std::string file;
};
/// Refuses two files for results that are the same one; devices and pipes may be shared.
void check_apart(const std::vector<named_file>& files);

/// Writes `value` to `path` as an io::output_file. Its texts may hold any bytes: those that are no UTF-8 become \xNN.
void write_json(const std::string& path, const nlohmann::json& value);

}  // namespace examples
