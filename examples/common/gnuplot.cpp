#include "gnuplot.hpp"

#include "program.hpp"

#include <penstock/handle.hpp>
#include <penstock/io/output_file.hpp>

#include <fmt/format.h>

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace examples {
namespace {

namespace fs = std::filesystem;

struct descriptor_traits {
  using native_type = int;
  static native_type empty() noexcept { return -1; }
  static void release(native_type descriptor) noexcept { ::close(descriptor); }
};
using descriptor = penstock::handle<descriptor_traits>;

/// What a program reads or writes lies in memory: no pipe can fill up, or break while it is written.
descriptor memory_file(std::string_view content) {
  descriptor file(::memfd_create("gnuplot", MFD_CLOEXEC));
  while (!content.empty()) {
    const ::ssize_t written = ::write(file.native(), content.data(), content.size());
    if (written <= 0) throw std::system_error(errno, std::generic_category(), "gnuplot's commands could not be kept");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file.native(), 0, SEEK_SET);
  return file;
}

std::string content_of(const descriptor& file) {
  std::string text;
  std::array<char, 4096> piece{};
  ::lseek(file.native(), 0, SEEK_SET);
  for (::ssize_t n = 0; (n = ::read(file.native(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(n));
  return text;
}

/// Runs the gnuplot that PATH finds on a script; gives what it said. Throws where there is none, or where it fails.
std::string run_gnuplot(const std::string& file, std::string_view script) {
  const descriptor in = memory_file(script), out = memory_file({});
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.native(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.native(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.native(), STDERR_FILENO);
  std::string name = "gnuplot";
  const std::array<char*, 2> arguments{name.data(), nullptr};
  ::pid_t child = 0;
  const int failure = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    throw std::runtime_error(fmt::format(
        "{}: gnuplot draws it, and could not be started ({}); install it (Debian: gnuplot-nox), or ask for no picture",
        file, std::strerror(failure)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string said = content_of(out);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(fmt::format("{}: gnuplot did not draw it: {}", file, said));
  return said;
}

}  // namespace

void check_plot(const char* option, const std::string& file, const input_files& inputs) {
  if (file.empty()) return;
  const fs::path ending = fs::path(file).extension();
  if (ending != ".svg" && ending != ".png")
    throw std::invalid_argument(fmt::format("{} {}: pictures are .svg or .png; end its name so", option, file));
  check_output(option, file, inputs);
  run_gnuplot(fmt::format("{} {}", option, file), "exit\n");
}

void draw(const std::string& file, std::string_view script) {
  penstock::io::output_file picture(file);
  const char* const terminal = fs::path(file).extension() == ".png" ? "png" : "svg background 'white'";
  run_gnuplot(file, fmt::format("set terminal {} size 900,600 noenhanced\nset output {}\n{}\nunset output\n", terminal,
                                quoted_for_gnuplot(picture.name().native()), script));
  picture.commit();
}

std::string quoted_for_gnuplot(std::string_view text) {
  std::string result = "'";  // between these, nothing but ' itself has a meaning, and no command goes over a line's end
  for (const char c : text) {
    result += c == '\n' || c == '\r' ? ' ' : c;
    if (c == '\'') result += c;
  }
  return result + "'";
}

}  // namespace examples
