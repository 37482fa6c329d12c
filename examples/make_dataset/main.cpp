// Makes the files that the examples read: Fashion-MNIST as HDF5, or synthetic rows of any size and layout.

#include <penstock/type.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "../common/existing_file.hpp"
#include "../common/program.hpp"
#include "../common/signals.hpp"
#include "fashion_mnist.hpp"
#include "mark.hpp"
#include "rows_file.hpp"

namespace {

struct options {
  std::string target;
  std::string source = "/usr/share/datasets/fashion-mnist";
  examples::synthetic_task task;
  std::string type = "float32";
  std::uint64_t rows = 0;
  std::string layout = "chunked";
  std::uint64_t chunk_rows = 0;
  std::string filter = "none";
  bool shuffle = false;
};

/// The level of "gzip:L"; -1 for "none".
int deflate_level(const std::string& filter) {
  if (filter == "none") return -1;
  int level = -1;
  const char* const end = filter.data() + filter.size();
  if (filter.starts_with("gzip:") && std::from_chars(filter.data() + 5, end, level).ptr == end && level >= 0 &&
      level <= 9)
    return level;
  throw std::invalid_argument(fmt::format("--filter {}: takes none, or gzip:L with a level L of 0 to 9", filter));
}

penstock::io::create_options storage_of(const options& o) {
  penstock::io::create_options storage{.deflate_level = deflate_level(o.filter), .shuffle = o.shuffle};
  if (o.layout == "chunked") {
    const auto chunk_rows =
        o.chunk_rows > 0 ? o.chunk_rows : std::max<std::uint64_t>(1, (1 << 20) / o.task.row_bytes());
    storage.chunk_shape = {std::clamp<std::uint64_t>(o.rows, 1, chunk_rows), o.task.columns};
  } else if (o.chunk_rows > 0 || o.shuffle || storage.deflate_level >= 0) {
    throw std::invalid_argument("--chunk-rows, --filter and --shuffle need --layout chunked");
  }
  return storage;
}

constexpr const char* target_help = "The file to write; one that is there is replaced if this program made it";

CLI::App* add_fashion_mnist(CLI::App& app, options& o) {
  auto* const command = app.add_subcommand(
      "fashion-mnist", "60000 + 10000 images of clothes, of 10 classes: /train/images, /train/labels, /test/...");
  command->add_option("OUT.h5", o.target, target_help)->required();
  command->add_option("--source", o.source, "Folder of the IDX files, from the package dataset-fashion-mnist")
      ->capture_default_str();
  return command;
}

CLI::App* add_rows(CLI::App& app, options& o) {
  auto* const command =
      app.add_subcommand("rows", "Synthetic rows that can be classified: /x (rows x columns), /label");
  command->add_option("OUT.h5", o.target, target_help)->required();
  command->add_option("--rows", o.rows, "Rows")->required();
  command->add_option("--columns", o.task.columns, "Values of a row")
      ->check(examples::at_least(1))
      ->capture_default_str();
  command->add_option("--type", o.type, "Type of /x: float32, float16, bfloat16, float64, or [u]int8 to [u]int64")
      ->capture_default_str();
  constexpr std::uint64_t most_classes = 1 << 20;  // as many as penstock-train tells apart
  command->add_option("--classes", o.task.classes, "Classes of /label")
      ->check(examples::at_least(2, most_classes))
      ->capture_default_str();
  command->add_option("--seed", o.task.seed, "Another seed, another task")->capture_default_str();
  command->add_option("--layout", o.layout, "How /x is stored")
      ->check(CLI::IsMember({"contiguous", "chunked"}))
      ->capture_default_str();
  command->add_option("--chunk-rows", o.chunk_rows, "Rows of a chunk; 0: as many as make about 1 MiB")
      ->capture_default_str();
  command->add_option("--filter", o.filter, "Compression: none, or gzip:L with a level of 0 to 9")
      ->capture_default_str();
  command->add_flag("--shuffle", o.shuffle, "Shuffle the bytes of a chunk before compression");
  return command;
}

void check_target(const options& o, const examples::input_files& inputs) {
  examples::check_output("OUT.h5", o.target, inputs, examples::output::hdf5);
  examples::check_own("OUT.h5", o.target, examples::mark, "was not made by penstock-make-dataset");
}

bool write_fashion_mnist(const options& o, const std::stop_token& stop) {
  check_target(o, examples::fashion_mnist_files(o.source));
  return examples::write_fashion_mnist(o.source, o.target, stop);
}

bool write_rows(options o, const std::stop_token& stop) {
  check_target(o, {});
  o.task.element = penstock::parse_type(o.type);
  return examples::write_rows_file(o.task, o.rows, storage_of(o), o.target, stop);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes HDF5 files to stream and train on. A file appears under its name when it is complete.",
               "penstock-make-dataset");
  options o;
  app.require_subcommand(1);
  const auto* const fashion_mnist = add_fashion_mnist(app, o);
  add_rows(app, o);
  return examples::run_program(app, argc, argv, [&] {
    const examples::stop_on_signal signals;
    if (!(fashion_mnist->parsed() ? write_fashion_mnist(o, signals.token()) : write_rows(o, signals.token())))
      throw examples::interrupted(signals.signal(), fmt::format("{}: stopped; the file is not written", o.target));
    fmt::print("{}: {} bytes\n", o.target, std::filesystem::file_size(o.target));
  });
}
