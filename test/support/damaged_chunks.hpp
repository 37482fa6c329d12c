#pragma once

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::test {

inline void run_python(const std::string& program) {
  BOOST_TEST_REQUIRE(std::system(("/usr/bin/python3 -c \"" + program + "\"").c_str()) == 0, program);
}

/// Flips the last stored byte of some chunks of a dataset, in the file itself: a part of gzip's or fletcher32's
/// checksum. h5py says where they lie.
inline void damage_chunks(const std::filesystem::path& file, const std::string& dataset,
                          const std::vector<int>& chunks) {
  std::string list;
  for (const int chunk : chunks) list += std::to_string(chunk) + ",";
  run_python("import h5py\nwith h5py.File('" + file.string() + "', 'r') as f:\n  at = [f['" + dataset +
             "'].id.get_chunk_info(c) for c in [" + list + "]]\nwith open('" + file.string() +
             "', 'r+b') as f:\n  for c in at:\n    f.seek(c.byte_offset + c.size - " +
             "1)\n    b = f.read(1)[0]\n    f.seek(c.byte_offset + c.size - 1)\n    f.write(bytes([b ^ 255]))\n");
}

}  // namespace penstock::test
