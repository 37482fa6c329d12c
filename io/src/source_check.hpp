#pragma once

#include "check_memory.hpp"
#include "chunk_check.hpp"
#include "mapped_selection.hpp"
#include "source_files.hpp"
#include "virtual_mapping.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::io {

/// Looks at the stored chunks of the sources of a virtual dataset that libhdf5 is about to read, as chunk_check does,
/// behind sources that are virtual themselves, too: at those that are shown, and no others, but where a mapping is not
/// understood or would take too long to follow (see project()). Then it looks at all that the mapping may show,
/// and throws where that is more than 131072 chunks.
///
/// Sources stay open, once they were looked at, as in libhdf5; one that is absent is looked for again each time, as
/// there. Thread-safe, by the guard.
class source_check {
 public:
  /// `dataset`: virtual, of a file that was opened with read_only_access. `memory` must outlive this. `faults` is asked
  /// as by source_finder, and for the memory of the mappings. Throws failure and std::bad_alloc.
  source_check(hid_t dataset, check_memory& memory, fault_seam faults);
  ~source_check();
  source_check(const source_check&) = delete;
  source_check& operator=(const source_check&) = delete;

  /// Throws damage where a chunk of a source that `part` of the virtual dataset shows is not sound, and failure or
  /// std::bad_alloc where that cannot be found out. Names no rows: those would be the source's. Takes the guard for
  /// each mapping anew.
  void look(const box& part);

  /// Whether all rows of `part` along `row_axis` show the same chunks, each of which goes through filters: then all are
  /// lost where one of these chunks is. False, too, where that cannot be told. Looks at no chunk. Throws as look().
  bool rows_show_same_chunks(const box& part, std::size_t row_axis);

  /// What the mappings in creation properties take here. Needs the guard. Throws failure.
  static std::size_t mapping_bytes(hid_t creation);

 private:
  struct source;
  struct shared;  // by all levels
  struct mapping {
    written_source written;
    mapped_selection target, from;
    box bounds;                                  // of the target
    std::map<std::uint64_t, source*> sources{};  // by number, 0 where there is one
    std::uint64_t there = 0;                     // so many of those that are numbered are known not to be absent
  };

  source_check(hid_t dataset, shared& all);
  void read_mappings(hid_t dataset);
  void look(mapping& m, const box& wanted, std::size_t depth);
  void look_numbered(mapping& m, const box& wanted, std::size_t depth);
  void look_in(source& s, const selection* target, const mapped_selection& from, std::uint64_t along, const box& wanted,
               std::size_t depth);
  void count_guessed(const source& s, const box& chunks);
  void look_at(source& s, const lattice& part, box& seen, std::size_t depth);
  source* find(mapping& m, std::uint64_t number);
  bool is_there(const source_name& name);
  source* open(const source_name& name);

  std::unique_ptr<shared> made_;  // null but at the top
  shared& all_;
  file_id own_;
  std::vector<std::uint64_t> shape_;
  std::string owner_;
  source_finder files_;
  std::vector<mapping> mappings_;
};

}  // namespace penstock::io
