#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::test {

/// A folder of a test's own that looks like one of the kernel's, with the files that its documentation describes.
class fake_folder {
 public:
  explicit fake_folder(const std::string& name)
      : root_(std::filesystem::temp_directory_path() / ("penstock-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~fake_folder() { std::filesystem::remove_all(root_); }
  fake_folder(const fake_folder&) = delete;
  fake_folder& operator=(const fake_folder&) = delete;

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  const std::filesystem::path& path() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace penstock::test
