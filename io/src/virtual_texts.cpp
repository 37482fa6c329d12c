#include "virtual_texts.hpp"

#include "claimed_texts.hpp"
#include "read_driver.hpp"
#include "source_files.hpp"
#include "stored_texts.hpp"
#include "virtual_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 8;
constexpr std::uint64_t texts_at_once = 1 << 14;                  // libhdf5 allocates each
constexpr std::uint64_t bytes_at_once = std::uint64_t{64} << 20;  // of them, as far as texts are shorter

class longest_text final : public text_sink {
 public:
  explicit longest_text(std::string source) : source_(std::move(source)) {}
  std::uint64_t bytes = 0;

  void empty(std::uint64_t) override {}
  void fill(std::uint64_t, const std::string& text) override { bytes = std::max<std::uint64_t>(bytes, text.size()); }
  void stored(std::uint64_t, global_heap::object& object, global_heap&) override {
    bytes = std::max<std::uint64_t>(bytes, object.bytes);
  }
  void damaged(std::uint64_t, std::uint64_t, const std::string& why) override {
    throw damage(fmt::format("its source {}: {}", source_, why));
  }

 private:
  std::string source_;
};

class survey {
 public:
  explicit survey(read_world& world) : world_(world) {}

  std::uint64_t longest = 0;

  /// Of all files that were visited.
  std::uint64_t file_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::size_t number : files_) {
      std::error_code gone;  // between then and now; it counts for nothing
      const std::uint64_t size = std::filesystem::file_size(world_.files[number].path, gone);
      if (!gone) bytes += size;
    }
    return bytes;
  }

  void visit(const source_file& file, const open_dataset& dataset, std::size_t depth) {
    files_.insert(file.number);
    if (depth > deepest) throw failure(fmt::format("its sources are virtual themselves more than {} deep", deepest));
    const property_id creation(checked(H5Dget_create_plist(dataset.id.native()), "its properties cannot be read"));
    source_finder files(world_.files[file.number].path, world_.faults);
    for (const auto& written : written_sources(creation.native()))
      for (std::uint64_t n = 0;
           visit_source(written.at(n), files, file, dataset.member, depth) && written.is_numbered();)
        ++n;
  }

 private:
  /// False where there is no such source.
  bool visit_source(const source_name& name, source_finder& files, const source_file& own, const std::string& member,
                    std::size_t depth) {
    auto file = own;
    file_id linked;
    if (name.file != ".") {
      const auto found = files.find(name.file);
      if (!found) return false;
      file.number = file.through = world_.add_file(found->path, found->identity);
      file.id = found->file;
    }
    if (!is_dataset(file.id, name.dataset)) return false;
    if (!done_.insert({file.number, name.dataset}).second) return true;
    const open_dataset dataset(file.id, member.empty() ? name.dataset : fmt::format("{}[{}]", name.dataset, member));
    const auto d = describe_dataset(dataset);
    if (d.null) return true;
    if (!d.value.labels)
      throw failure(fmt::format("its source {}:{} holds no texts of variable length", name.file, name.dataset));
    file = file_of(world_, dataset, file, linked);
    if (d.external_files > 0) check_external_files(world_, file, dataset, d.external_files);
    if (d.info.layout == layout::virtual_dataset) {
      visit(file, dataset, depth + 1);
      return true;
    }
    longest_text sink(fmt::format("{}:{}", name.file, name.dataset));
    files_.insert(file.number);
    if (d.values() > 0) {
      stored_texts texts(world_, file, dataset);
      check_claimed_texts(d.values(), texts.file_bytes());
      texts.visit(sink);
    }
    longest = std::max(longest, sink.bytes);
    return true;
  }

  read_world& world_;
  std::set<std::pair<std::size_t, std::string>> done_;
  std::set<std::size_t> files_;  // their numbers
};

/// Texts that libhdf5 allocated, given back at the end.
class texts {
 public:
  texts(hid_t memory, hid_t space, std::uint64_t count) : memory_(memory), space_(space), all_(count, nullptr) {}
  ~texts() { H5Dvlen_reclaim(memory_, space_, H5P_DEFAULT, all_.data()); }
  texts(const texts&) = delete;
  texts& operator=(const texts&) = delete;
  std::vector<char*>& all() noexcept { return all_; }

 private:
  hid_t memory_, space_;
  std::vector<char*> all_;
};

/// Halves that follow each other in C order, until each has `most` values or one.
void read_parts(hid_t dataset, const dataset_description& d, const box& part, std::uint64_t most,
                const std::function<void(const char*)>& f) {
  if (part.values() > most && part.values() > 1) {
    std::size_t axis = 0;
    while (part.count[axis] < 2) ++axis;
    auto first = part, second = part;
    first.count[axis] = part.count[axis] / 2;
    second.start[axis] += first.count[axis];
    second.count[axis] -= first.count[axis];
    read_parts(dataset, d, first, most, f);
    return read_parts(dataset, d, second, most, f);
  }
  const hsize_t values = part.values();
  const space_id here(checked(H5Screate_simple(1, &values, nullptr), "a memory space cannot be made"));
  const space_id there(checked(H5Dget_space(dataset), "its shape cannot be read"));
  std::array<hsize_t, max_rank> start{}, count{};
  std::copy_n(part.start.begin(), part.rank, start.begin());
  std::copy_n(part.count.begin(), part.rank, count.begin());
  checked(H5Sselect_hyperslab(there.native(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          "its rows cannot be selected");
  texts piece(d.value.memory.native(), here.native(), values);
  take_driver_error();
  checked(H5Dread(dataset, d.value.memory.native(), here.native(), there.native(), H5P_DEFAULT, piece.all().data()),
          "libhdf5 cannot read its texts");
  refuse_unopened_sources();
  for (const char* text : piece.all()) f(text);
}

}  // namespace

virtual_texts::virtual_texts(read_world& world, const source_file& file, const open_dataset& dataset,
                             const dataset_description& description)
    : dataset_(dataset), description_(description) {
  const library_guard guard;
  survey sources(world);
  sources.visit(file, dataset, 0);
  world.library.close_idle();
  file_bytes_ = sources.file_bytes();
  most_at_once_ = std::clamp<std::uint64_t>(bytes_at_once / (sources.longest + 1), 1, texts_at_once);
}

void virtual_texts::visit(const std::function<void(const char*)>& f) const {
  const library_guard guard;
  box all;
  all.rank = description_.rank;
  std::copy(description_.info.shape.begin(), description_.info.shape.end(), all.count.begin());
  read_parts(dataset_.id.native(), description_, all, most_at_once_, f);
}

}  // namespace penstock::io
