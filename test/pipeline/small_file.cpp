#include "small_file.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/io/writer.hpp>

#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace penstock::test {
namespace {

std::filesystem::path unused_path() {
  static int number = 0;
  return std::filesystem::temp_directory_path() /
         ("penstock-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++) + ".h5");
}

template <class T>
void write(io::writer& file, const char* name, const std::vector<std::uint64_t>& shape, const std::vector<T>& values,
           std::uint64_t chunk_rows, int level) {
  io::create_options how;
  if (chunk_rows && shape[0]) {
    how.chunk_shape = shape;
    how.chunk_shape[0] = std::min(chunk_rows, shape[0]);
    how.deflate_level = level;
    how.shuffle = level >= 0;
  }
  file.create(name, type_of<T>, shape, how);
  if (shape[0]) file.write_rows(name, 0, shape[0], std::as_bytes(std::span(values)));
}

}  // namespace

small_file::small_file(std::uint64_t rows, std::uint64_t chunk_rows, int deflate_level)
    : path_(unused_path()), rows_(rows) {
  std::vector<float> wide(rows * 33);
  std::iota(wide.begin(), wide.end(), 0.0f);
  std::vector<std::uint8_t> image(rows * 12);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i % 251);
  std::vector<std::int32_t> label(rows);
  std::iota(label.begin(), label.end(), 0);
  io::writer file(path_);
  write(file, "/wide", {rows, 33}, wide, chunk_rows, deflate_level);
  write(file, "/image", {rows, 3, 4}, image, chunk_rows * 2 / 3, deflate_level);
  write(file, "/label", {rows}, label, 0, -1);
  file.commit();
}

small_file::~small_file() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

pipeline::source small_file::all() const {
  return plain().field("image", at("/image"), {.as = type::float32, .scale = 2, .shift = 1});
}

pipeline::source small_file::plain() const {
  return pipeline::source{}.field("wide", at("/wide")).field("label", at("/label"));
}

template <class T>
std::vector<T> fetch(const pipeline::batch& batch, std::string_view field) {
  const auto view = batch.view(field);
  std::vector<T> values(batch.rows() * view.row_bytes / sizeof(T));
  gpu::copy(batch.stream(), values.data(), batch.field<T>(field), batch.rows() * view.row_bytes);
  batch.stream().synchronize();
  return values;
}
template std::vector<float> fetch(const pipeline::batch&, std::string_view);
template std::vector<std::int32_t> fetch(const pipeline::batch&, std::string_view);
template std::vector<double> fetch(const pipeline::batch&, std::string_view);

void check(const pipeline::batch& batch, std::vector<std::uint64_t>& rows) {
  const auto ids = batch.row_ids();
  BOOST_REQUIRE_EQUAL(ids.size(), batch.valid_rows());
  std::size_t wrong = 0;
  for (const pipeline::field_view& view : batch.fields()) {
    const std::string name(view.name);
    if (name != "label" && name != "wide" && name != "image") continue;
    const auto stored = batch.row_identities(name);  // a row's values are those of its number in its file
    if (name == "label") {
      const auto label = fetch<std::int32_t>(batch, name);
      for (std::size_t i = 0; i < ids.size(); ++i) wrong += label[i] != static_cast<std::int32_t>(stored[i].index);
    } else if (name == "wide") {
      const auto wide = fetch<float>(batch, name);
      for (std::size_t i = 0; i < ids.size() * 33; ++i)
        wrong += wide[i] != static_cast<float>(stored[i / 33].index * 33 + i % 33);
    } else if (name == "image") {
      const auto image = fetch<float>(batch, name);
      for (std::size_t i = 0; i < ids.size() * 12; ++i)
        wrong += image[i] != 2 * static_cast<float>((stored[i / 12].index * 12 + i % 12) % 251) + 1;
    }
  }
  BOOST_TEST(wrong == 0u,
             "values of batch " << batch.index() << " of epoch " << batch.epoch() << " are wrong: " << wrong);
  rows.insert(rows.end(), ids.begin(), ids.end());
}

std::vector<std::uint64_t> consume(pipeline::pipeline& from, std::uint64_t first_epoch, std::uint64_t epochs,
                                   pipeline::consume_options options) {
  std::vector<std::uint64_t> rows;
  for (const pipeline::batch& batch : from.epochs(first_epoch, epochs, std::move(options))) check(batch, rows);
  return rows;
}

std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (const gpu::device d : gpu::device::all())
    if (d.is_host() || d.ordinal() == 0) names.push_back(d.name());
  return names;
}

}  // namespace penstock::test
