#include <penstock/io/output_file.hpp>

#include "failure.hpp"
#include "partial_file.hpp"
#include "system_call.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

namespace penstock::io {
namespace {

/// What is open stays what it is, also where it is a regular file: others write to it.
bool takes_bytes_as_they_come(const std::filesystem::path& path) {
  std::error_code none;
  return (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) ||
         names_descriptor(path);
}

/// An open file that takes bytes at its end, or as they come.
class stream {
 public:
  stream(const std::filesystem::path& path, int flags, const fault_seam& faults)
      : path_(path.native()), faults_(faults), fd_(open_to_write(path, O_NOCTTY | flags, faults)) {
    if (!fd_) partial_file::refuse(errno);
  }
  void append(std::string_view bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const auto rest = bytes.substr(done);
      const auto put = past_signals({faults_, fault_site::write_file, path_, done, rest.size()},
                                    [&](std::size_t most) { return ::write(fd_.native(), rest.data(), most); });
      if (put <= 0) partial_file::refuse(put < 0 ? errno : ENOSPC);
      done += static_cast<std::size_t>(put);
    }
  }
  /// Pipes and devices have no disk.
  void sync() const {
    const auto sync = [&](std::size_t) { return ::fsync(fd_.native()); };
    if (past_signals({faults_, fault_site::sync_file, path_}, sync) != 0 && errno != EINVAL && errno != ENOTSUP)
      partial_file::refuse(errno);
  }

 private:
  std::string path_;
  fault_seam faults_;
  descriptor fd_;
};

}  // namespace

struct output_file::impl {
  partial_file partial;
  bool takes_as_they_come;
  std::unique_ptr<stream> open{};  // what takes them; another program may be the one that writes

  impl(std::filesystem::path path, fault_seam faults)
      : partial(std::move(path), std::move(faults)), takes_as_they_come(takes_bytes_as_they_come(partial.path())) {}

  error_context context() const { return {.file = partial.path().string()}; }

  void append(std::string_view bytes) {
    if (!takes_as_they_come) return partial.append(bytes);
    if (!open) open = std::make_unique<stream>(partial.path(), 0, partial.faults());
    open->append(bytes);
  }
};

output_file::output_file(std::filesystem::path path, fault_seam faults)
    : impl_(std::make_unique<impl>(std::move(path), std::move(faults))) {
  if (!impl_->takes_as_they_come) with_context(impl_->context(), [&] { impl_->partial.create(); });
}
output_file::output_file(output_file&&) noexcept = default;
output_file& output_file::operator=(output_file&&) noexcept = default;
output_file::~output_file() = default;

const std::filesystem::path& output_file::name() const noexcept {
  return impl_->takes_as_they_come ? impl_->partial.path() : impl_->partial.name();
}

void output_file::append(std::string_view bytes) {
  with_context(impl_->context(), [&] { impl_->append(bytes); });
}

void output_file::commit() {
  if (!impl_->takes_as_they_come) with_context(impl_->context(), [&] { impl_->partial.publish(); });
}

void write_file(const std::filesystem::path& path, std::string_view bytes, fault_seam faults) {
  output_file to(path, std::move(faults));
  to.append(bytes);
  to.commit();
}

void append_to_file(const std::filesystem::path& path, std::string_view bytes, durability until,
                    const fault_seam& faults) {
  with_context({.file = path.string()}, [&] {
    const stream to(path, O_APPEND | O_CREAT, faults);
    to.append(bytes);
    if (until == durability::disk) to.sync();
  });
}

}  // namespace penstock::io
