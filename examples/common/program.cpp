#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <penstock/bytes.hpp>
#include <penstock/error.hpp>
#include <penstock/io/output_file.hpp>
#include <penstock/utf8.hpp>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "existing_file.hpp"

namespace examples {

namespace {

/// CLI11 2.1 reads "-1" as the largest unsigned number, and what is larger than that as it, too. It takes the next
/// option as the value of one whose value is missing.
void refuse_odd_values(CLI::App& app) {
  const CLI::Validator count(
      [](const std::string& text) {
        if (text.starts_with('-')) return fmt::format("{} is below 0", text);
        std::uint64_t value = 0;
        const bool fits =
            std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc::result_out_of_range;
        return fits ? std::string() : fmt::format("{} is above {}", text, std::numeric_limits<std::uint64_t>::max());
      },
      "");
  const CLI::Validator no_option(
      [](const std::string& text) {
        return text.starts_with("--") ? fmt::format("its value is missing before {}", text) : std::string();
      },
      "");
  const CLI::Validator not_empty(
      [](const std::string& text) { return text.empty() ? "an empty name is no name" : std::string(); }, "");
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_type_name() == "TEXT") option->check(not_empty);
    if (option->get_items_expected_max() > 0) option->check(no_option);
    if (option->get_type_name().starts_with("UINT")) option->check(count);
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_odd_values(*command);
}

/// Makes a file beside `file` that is gone when the program is, whatever ends it: it has no name. 0, or why not.
/// Where the file system has none such, the file has the name of one that a writer begins, which whoever writes `file`
/// next removes if a signal or a kill came between the two calls.
int make_probe(const std::string& file, const std::filesystem::path& folder) {
  const auto done = [](int descriptor) { return ::close(descriptor), 0; };
  const std::string name = fmt::format("{}.partial-{}", file, ::getpid());
  struct stat there {};
  if (::lstat(name.c_str(), &there) != 0 && errno == ENAMETOOLONG) return ENAMETOOLONG;
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (nameless >= 0) return done(nameless);
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return errno;
  const int named = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (named < 0) return errno == EEXIST ? 0 : errno;
  ::unlink(name.c_str());
  return done(named);
}

/// A folder that cannot be written is found by writing: permissions do not tell of file systems that are read only.
void check_folder(const char* option, const std::string& file, const std::filesystem::path& folder) {
  std::error_code none;
  if (std::filesystem::exists(file, none) && !std::filesystem::is_regular_file(file, none)) return;
  if (const int code = make_probe(file, folder); code != 0)
    throw std::runtime_error(fmt::format("{} {}: files cannot be made in {} ({}); name another folder", option, file,
                                         folder.string(), std::strerror(code)));
}

/// The next files and pipes would get the numbers of those that are closed, and what is printed would go into them.
void open_standard_streams() {
  while (true) {
    const int descriptor = ::open("/dev/null", O_RDWR);
    if (descriptor > STDERR_FILENO) ::close(descriptor);
    if (descriptor < 0 || descriptor > STDERR_FILENO) return;
  }
}

/// JSON is UTF-8, and texts may hold any bytes.
nlohmann::json with_utf8(nlohmann::json value) {
  if (value.is_structured())
    for (auto& inner : value) inner = with_utf8(std::move(inner));
  if (value.is_string()) value = penstock::as_utf8(value.get_ref<const std::string&>());
  return value;
}

bool is_limited(__rlimit_resource_t what) {
  ::rlimit limit{};
  return ::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

int end_program(int code) {
  if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return code;
  std::fflush(nullptr);
  ::_exit(code);
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<void()>& work) {
  open_standard_streams();
  // A file that may not grow (ulimit -f) is an error like a full disk: what was begun is removed.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    refuse_odd_values(app);
    app.parse(argc, argv);
    work();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw std::runtime_error("the output could not be written whole; is there room where it goes?");
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help comes this way too
    fmt::print(stderr, "{}: {}; --help shows what there is\n", app.get_name(), e.what());
    return 2;
  } catch (const interrupted& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 128 + e.signal();
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: there is not enough memory\n", app.get_name());
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 1;
  }
}

CLI::Validator at_least(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) {
    std::uint64_t value = 0;
    const std::errc parsed = std::from_chars(text.data(), text.data() + text.size(), value).ec;
    if (parsed == std::errc::result_out_of_range || (parsed == std::errc{} && value > most))
      return fmt::format("{} is too many; it takes at most {}", text, most);
    return parsed == std::errc{} && value < least ? fmt::format("{} is too few; it takes at least {}", text, least)
                                                  : std::string();
  };
  return {check, ""};
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

void check_output(const char* option, const std::string& file, const input_files& inputs, output kind) {
  namespace fs = std::filesystem;
  if (file.empty()) return;
  const fs::path folder = fs::absolute(file).parent_path();
  if (!fs::is_directory(folder))
    throw std::runtime_error(fmt::format("{} {}: there is no folder {}; make it first", option, file, folder.string()));
  if (fs::is_directory(file)) throw std::runtime_error(fmt::format("{} {}: it is a folder; name a file", option, file));
  check_folder(option, file, folder);
  if (inputs.include(file))
    throw std::invalid_argument(fmt::format("{} {}: the data are read from it; name another file", option, file));
  if (kind != output::hdf5 && is_hdf5(file))
    throw std::invalid_argument(fmt::format(
        "{} {}: it is an HDF5 file, and what is written is none: it is not replaced; name another, or remove it",
        option, file));
}

void check_apart(const std::vector<named_file>& files) {
  namespace fs = std::filesystem;
  std::error_code none;
  constexpr int most_links = 40;                     // Linux follows no more
  const auto whole = [&](const std::string& file) {  // where it will be, though it may not be there yet
    fs::path path = fs::absolute(file);
    for (int links = 0; links < most_links && fs::is_symlink(path, none); ++links)
      path = path.parent_path() / fs::read_symlink(path, none);
    return fs::weakly_canonical(path);
  };
  for (std::size_t n = 0; n < files.size(); ++n)
    for (std::size_t m = 0; m < n; ++m) {
      const auto& [option, file] = files[n];
      const auto& [other_option, other] = files[m];
      if (file.empty() || other.empty() || (fs::exists(file, none) && !fs::is_regular_file(file, none))) continue;
      if (whole(file) == whole(other) || fs::equivalent(file, other, none))
        throw std::invalid_argument(
            fmt::format("{} {}: it is the file of {} too; name another", option, file, other_option));
    }
}

void write_json(const std::string& path, const nlohmann::json& value) {
  penstock::io::write_file(path, with_utf8(value).dump(2) + '\n');
}

}  // namespace examples
