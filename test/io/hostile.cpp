// Headers that claim more than their files hold: sizes are checked before memory is asked for.

#include "../support/damaged_chunks.hpp"
#include "failure.hpp"
#include "filters/filter_chain.hpp"
#include "made_files.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <string>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

/// A row is read, or refused in one sentence that names the file. What a row takes is the caller's, and the scratch of
/// a chunk is the ledger's: both may be refused for want of memory.
void try_row(const io::row_reader& reader, std::uint64_t row, const std::filesystem::path& file) {
  if (reader.row_bytes() > std::size_t{16} << 20) return;
  try {
    std::vector<std::byte> out(reader.row_bytes());
    reader.read(row, 1, out);
  } catch (const io::error& e) {
    const std::string text = e.what();
    if (text.find('\n') != std::string::npos || e.context().file != file.string()) throw;
    if (text.find("()") != std::string::npos) throw;  // libhdf5's own words are in it
    std::cout << "  " << text << "\n";
  }
}

void visit(const std::filesystem::path& path, const io::read_options& options) {
  try {
    const io::file file(path);
    file.datasets();
    const io::row_reader reader({{.file = path, .dataset = "/x"}}, options);
    if (reader.rows() == 0) return;
    try_row(reader, 0, path);
    try_row(reader, reader.rows() - 1, path);
  } catch (const io::error& e) {
    const std::string text = e.what();
    if (text.find('\n') != std::string::npos || text.find(path.filename().string()) == std::string::npos) throw;
    if (e.context().system == ENOMEM) throw;  // opening takes none that is worth a word
    std::cout << "  " << text << "\n";
  }
}

/// In a child that may take `bytes` more of address space, 20 s of a processor and two minutes: its exit status.
int status_of_child(const std::filesystem::path& path, std::size_t bytes, const io::read_options& options = {}) {
  std::cout.flush();
  const auto child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    const rlimit memory{most, most}, time{20, 20};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CPU, &time);
    ::alarm(120);  // who waits takes no processor
    int status = 1;
    try {
      visit(path, options);
      status = 0;
    } catch (const std::exception& e) {
      std::cout << e.what() << "\n";
    }
    std::cout.flush();
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile)

BOOST_AUTO_TEST_CASE(claims_of_headers_take_no_memory_and_no_time,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  std::ifstream list(made_folder() / "hostile.txt");
  int files = 0;
  for (std::string name; std::getline(list, name); ++files) {
    const auto status = status_of_child(made_folder() / name, std::size_t{64} << 20);
    BOOST_TEST(status == 0, name);
  }
  BOOST_TEST(files == 14);
}

BOOST_AUTO_TEST_CASE(mappings_of_one_source_share_its_index_and_are_in_the_ledger) {
  const io::row_reader reader({{.file = made_folder() / "hostile_one_index.h5", .dataset = "/x"}});
  BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
  std::size_t index = 0, mappings = 0;
  for (const auto& item : reader.memory({.concurrency = 1})) {
    if (item.name == "chunk index") index += item.bytes;
    if (item.name == "mappings of virtual datasets") mappings += item.bytes;
  }
  BOOST_TEST(index == 20000u * 16);
  BOOST_TEST(mappings >= 2000u * 3 * 32 * 8);  // starts, counts and steps along 32 axes each
}

/// libhdf5 would take the rest from behind it.
BOOST_AUTO_TEST_CASE(a_fill_value_that_is_longer_than_a_header_can_hold_is_refused) {
  const auto file = made_folder() / "long_fill.h5";
  penstock::test::run_python("path = '" + file.string() + "'\n" + R"(
import h5py, numpy, struct
from h5py import h5d, h5p, h5s, h5t
create = h5p.create(h5p.DATASET_CREATE)
fill = numpy.array(b'7' * 30000).view('V30000')
create.set_fill_value(fill)
with h5py.File(path, 'w') as f:
    h5d.create(f.id, b'x', h5t.py_create(fill.dtype), h5s.create_simple((4,)), create)
data = open(path, 'rb').read()
assert data.count(struct.pack('<I', 30000)) == 3
open(path, 'wb').write(data.replace(struct.pack('<I', 30000), struct.pack('<I', 100000), 1))
)");
  BOOST_CHECK_EXCEPTION(io::row_reader({{.file = file, .dataset = "/x"}}), io::error, [](const io::error& e) {
    return std::string(e.what()).find("longer than 64 KiB") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(fill_values_of_links_to_one_dataset_are_shared_and_right) {
  const io::row_reader reader({{.file = made_folder() / "hostile_one_fill.h5", .dataset = "/x"}});
  std::vector<std::byte> rows(2 * reader.row_bytes());
  reader.read(298, 2, rows);
  BOOST_TEST((rows == std::vector<std::byte>(60000, std::byte{'7'})));
}

/// libhdf5 would wait without end for who writes to the pipe, also where it reads the source of a virtual dataset.
BOOST_AUTO_TEST_CASE(a_pipe_in_the_place_of_an_external_file_is_refused_before_libhdf5_opens_it) {
  const auto pipe = made_folder() / "external.pipe";
  std::filesystem::remove(pipe);
  BOOST_REQUIRE_EQUAL(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string how : {"x", "virtual", "virtual_of_another_type"}) {
    const auto file = made_folder() / ("piped_" + how + ".h5");
    penstock::test::run_python(
        "import h5py, numpy\nwith h5py.File('" + file.string() + "', 'w') as f:\n  f.create_dataset('x' if '" + how +
        "' == 'x' else 'of', (1000, 8), 'f4', external=[('" + pipe.string() + "', 0, 32000)])\n  if '" + how +
        "' != 'x':\n    v = h5py.VirtualLayout((1000, 8), 'f8' if 'type' in '" + how +
        "' else 'f4')\n    v[:] = h5py.VirtualSource('.', 'of', (1000, 8), 'f4')\n    "
        "f.create_virtual_dataset('x', v)\n");
    BOOST_TEST(status_of_child(file, std::size_t{768} << 20) == 0, how);  // it ends in time
    BOOST_CHECK_EXCEPTION(io::row_reader({{.file = file, .dataset = "/x"}}), io::error, [&](const io::error& e) {
      return std::string(e.what()).find(pipe.string() + " is no regular file") != std::string::npos;
    });
  }
}

/// What libhdf5 alone can find is looked at before it is asked: sources that %b numbers, mappings that are no boxes,
/// and sources that are virtual themselves.
BOOST_AUTO_TEST_CASE(a_pipe_behind_a_virtual_dataset_that_libhdf5_reads_is_refused_before_it_is_opened) {
  const auto pipe = made_folder() / "source.pipe";
  std::filesystem::remove(pipe);
  BOOST_REQUIRE_EQUAL(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string how : {"numbered", "irregular", "nested", "file", "irregular_file", "numbered_file"}) {
    const auto file = made_folder() / ("piped_source_" + how + ".h5");
    penstock::test::run_python("how, path, pipe = '" + how + "', '" + file.string() + "', '" + pipe.string() + "'\n" +
                               R"(
import h5py
from h5py import h5d, h5p, h5s, h5t

def irregular():
    space = h5s.create_simple((1000, 8))
    space.select_hyperslab((0, 0), (100, 8))
    space.select_hyperslab((150, 0), (300, 8), op=h5s.SELECT_OR)
    return space

def virtual(file, name, mapped, source, source_space, maximum=None, source_file='.'):
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_virtual(mapped, source_file.encode(), source.encode(), source_space)
    space = h5s.create_simple(mapped.get_simple_extent_dims(), maximum)
    h5d.create(file.id, name.encode(), h5t.IEEE_F32LE, space, dcpl=create)

def numbered(file, source, source_file='.'):
    mapped = h5s.create_simple((2, 8), (h5s.UNLIMITED, 8))
    mapped.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), (1, 8), (1, 8))
    virtual(file, 'x', mapped, source, h5s.create_simple((1, 8)), (h5s.UNLIMITED, 8), source_file)

with h5py.File(path, 'w') as file:
    outside = dict(external=[(pipe, 0, 32000)])
    if how == 'numbered':
        file.create_dataset('of0', (1, 8), 'f4')
        file.create_dataset('of1', (1, 8), 'f4', **outside)
        numbered(file, 'of%b')
    elif how == 'numbered_file':
        with h5py.File(pipe.replace('.pipe', '.0'), 'w') as first:
            first.create_dataset('of', (1, 8), 'f4')
        numbered(file, 'of', pipe.replace('.pipe', '.%b'))
    elif how == 'file':
        whole = h5s.create_simple((1000, 8))
        virtual(file, 'x', whole, 'of', whole, source_file=pipe)
    elif how == 'irregular_file':
        virtual(file, 'x', irregular(), 'of', irregular(), source_file=pipe)
    else:
        file.create_dataset('of', (1000, 8), 'f4', **outside)
        whole = h5s.create_simple((1000, 8))
        if how == 'nested':
            virtual(file, 'inner', whole, 'of', whole)
        virtual(file, 'x', irregular(), 'inner' if how == 'nested' else 'of', irregular())
)");
    auto named = pipe;
    if (how == "numbered_file") {  // the first is there, the second is a pipe
      named.replace_extension(".1");
      std::filesystem::remove(named);
      BOOST_REQUIRE_EQUAL(::mkfifo(named.c_str(), 0600), 0);
    }
    for (const bool missing : {false, true}) {  // a pipe is no source that is missing
      const io::read_options options{.allow_missing_sources = missing};
      BOOST_TEST(status_of_child(file, std::size_t{768} << 20, options) == 0, how);  // it ends in time
      BOOST_CHECK_EXCEPTION(io::row_reader({{.file = file, .dataset = "/x"}}, options), io::error,
                            [&](const io::error& e) {
                              const std::string text = e.what();
                              return text.find(named.string()) != std::string::npos &&
                                     text.find("is no regular file") != std::string::npos;
                            });
    }
    const auto described = io::file(file).describe("/x");
    BOOST_TEST(described.unreadable.find("is no regular file") != std::string::npos,
               how << ": " << described.unreadable);
  }
}

/// Found by fuzzing: libaec's memory for a line holds no sample more than there are, but the last pair of an odd block
/// is written whole.
BOOST_AUTO_TEST_CASE(szip_blocks_of_odd_length_are_refused_before_libaec_sees_them) {
  const auto file = made_folder() / "odd_szip.h5";
  penstock::test::run_python(
      "import h5py, numpy, struct\nwith h5py.File('" + file.string() +
      "', 'w') as f:\n  d = f.create_dataset('x', data=numpy.arange(4096, dtype='u2'), chunks=(1024,), "
      "compression='szip', compression_opts=('nn', 16))\n  v = list(d.id.get_create_plist().get_filter(0)[2])\nb = "
      "open('" +
      file.string() + "', 'rb').read()\nwas = struct.pack('<4I', *v)\nassert was in b\nv[1] = 15\nopen('" +
      file.string() + "', 'wb').write(b.replace(was, struct.pack('<4I', *v)))\n");
  BOOST_CHECK_EXCEPTION(io::row_reader({{.file = file, .dataset = "/x"}}), io::error, [](const io::error& e) {
    return std::string(e.what()).find("15 samples") != std::string::npos;
  });
  const auto all = io::file(file).datasets();
  BOOST_TEST(all.size() == 1u);
  BOOST_TEST(!all.front().unreadable.empty());
}

/// Found by fuzzing: samples of 13 bits take two bytes, and libaec calls it a want of memory where only one is left.
BOOST_AUTO_TEST_CASE(szip_samples_that_do_not_fit_a_chunk_are_damage_and_no_want_of_memory) {
  const io::filter_chain chain({{4, "szip", {0x2c, 16, 13, 48}}}, 1);
  const std::string stored("\x01\x00\x00\x00\xdf\x89\xfa\xbf\xc0\x03\x00\x13", 12);
  io::decode_workspace workspace(chain.workspace(stored.size()));
  std::string chunk(1, '?');
  BOOST_CHECK_EXCEPTION(
      chain.decode(std::as_bytes(std::span(stored)), 0, std::as_writable_bytes(std::span(chunk)), workspace),
      io::failure, [](const io::failure& e) { return e.damaged; });
}

/// Found by fuzzing: where bytes repeat, the place that they are copied from was an index below zero, which wrapped:
/// clang's UBSan tells (`test/fuzz/run --findings lzf`). Places before the chunk must not be taken either.
BOOST_AUTO_TEST_CASE(lzf_bytes_that_repeat_come_from_within_the_chunk) {
  const auto decoded = [](const std::string& stored, std::size_t chunk_bytes) {
    const io::filter_chain chain({{32000, "lzf", {}}}, chunk_bytes);
    io::decode_workspace workspace(chain.workspace(stored.size()));
    std::string chunk(chunk_bytes, '?');
    chain.decode(std::as_bytes(std::span(stored)), 0, std::as_writable_bytes(std::span(chunk)), workspace);
    return chunk;
  };
  // A control byte, as LibLZF's format has it: n - 1 before n literals; else the length less 2 in its upper three bits
  // (7: and a byte more), the distance less 1 in the others and the byte that follows.
  const std::string abc{2, 'a', 'b', 'c'}, nine_of_three{'\xe0', 0, 2}, five_of_two{'\x60', 1},
      ten_of_one{'\xe0', 1, 0};
  BOOST_TEST(decoded(abc + nine_of_three, 12) == "abcabcabcabc");
  BOOST_TEST(decoded(abc + five_of_two + ten_of_one, 18) == "abcbcbcbbbbbbbbbbb");
  for (const std::string& from_before :
       {std::string{'\xe0', 0, 3}, std::string{'\x60', 3}, std::string{'\x7f', '\xff'}})
    BOOST_CHECK_THROW(decoded(abc + from_before, 12), io::damage);
  BOOST_CHECK_THROW(decoded(abc + nine_of_three, 11), io::damage);  // beyond its end
}

/// Found by fuzzing: libhdf5 hands on what the file says, which need be no value of its enumeration.
BOOST_AUTO_TEST_CASE(a_time_of_filling_that_there_is_not_is_none) {
  const auto file = made_folder() / "odd_fill_time.h5";
  penstock::test::run_python(
      "import h5py, numpy\nwith h5py.File('" + file.string() +
      "', 'w') as f:\n  f.create_dataset('x', data=numpy.arange(12, dtype='u2').reshape(4, 3))\nb = open('" +
      file.string() + "', 'rb').read()\nwas = bytes([2, 2, 2, 1])\nassert b.count(was) == 1\nopen('" + file.string() +
      "', 'wb').write(b.replace(was, bytes([2, 2, 255, 1])))\n");
  const io::row_reader reader({{.file = file, .dataset = "/x"}});
  std::vector<std::uint16_t> rows(6);
  reader.read(2, 2, std::as_writable_bytes(std::span(rows)));
  BOOST_TEST(rows == (std::vector<std::uint16_t>{6, 7, 8, 9, 10, 11}), boost::test_tools::per_element());
}

/// Found by fuzzing: places within a chunk were added to its address, which wrapped: rows came from the file's first
/// bytes. (Almost nothing is stored, so that libhdf5 lists addresses without looking at them.)
BOOST_AUTO_TEST_CASE(a_chunk_whose_address_wraps_is_not_read_from_the_beginning_of_the_file) {
  const auto file = made_folder() / "wrapping_address.h5";
  penstock::test::run_python(
      "import h5py, numpy, struct\nwith h5py.File('" + file.string() +
      "', 'w') as f:\n  d = f.create_dataset('x', (1 << 20,), '<u4', chunks=(4,))\n  for n in (0, 5, 1 << 17, (1 << "
      "18) "
      "- 1): d[4 * n : 4 * n + 4] = n + numpy.arange(4)\n  at = d.id.get_chunk_info_by_coord((20,)).byte_offset\nb = "
      "open('" +
      file.string() +
      "', 'rb').read()\nkey = struct.pack('<IIQQ', 16, 0, 20, 0)\nwas = key + struct.pack('<Q', at)\nassert "
      "b.count(was) == 1\nopen('" +
      file.string() + "', 'wb').write(b.replace(was, key + struct.pack('<Q', 2**64 - 8)))\n");
  const io::row_reader reader({{.file = file, .dataset = "/x"}});
  BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
  std::vector<std::uint32_t> rows(4);
  reader.read(0, 4, std::as_writable_bytes(std::span(rows)));
  BOOST_TEST(rows == (std::vector<std::uint32_t>{0, 1, 2, 3}), boost::test_tools::per_element());
  BOOST_CHECK_EXCEPTION(reader.read(22, 2, std::as_writable_bytes(std::span(rows).first(2))), io::error,
                        [](const io::error& e) {
                          const std::string text = e.what();
                          return e.context().damaged && text.find("past the end of the file") != std::string::npos;
                        });
}

/// What they were decoded into is for the fuzz target chunk-index to see (`found-chunks-of-no-bytes`); this is the
/// outcome.
BOOST_AUTO_TEST_CASE(chunks_of_no_bytes_are_damaged) {
  const auto file = made_folder() / "chunks_of_no_bytes.h5";
  penstock::test::run_python(
      "import h5py, struct\nwith h5py.File('" + file.string() +
      "', 'w') as f:\n  d = f.create_dataset('x', (1 << 20, 8), '<u4', chunks=(4, 4), compression=32001, "
      "compression_opts=(2, 2, 4, 64), allow_unknown_filter=True)\n  d.id.write_direct_chunk((8, 4), bytes(20))\nb = "
      "open('" +
      file.string() +
      "', 'rb').read()\nkey = struct.pack('<IQQQ', 0, 8, 4, 0)\nwas = struct.pack('<I', 20) + key\nassert "
      "b.count(was) == 1\nopen('" +
      file.string() + "', 'wb').write(b.replace(was, bytes(4) + key))\n");
  const io::row_reader reader({{.file = file, .dataset = "/x"}});
  std::vector<std::uint32_t> rows(16, 1);
  reader.read(2, 2, std::as_writable_bytes(std::span(rows)));
  BOOST_TEST(rows == std::vector<std::uint32_t>(16, 0), boost::test_tools::per_element());
  BOOST_CHECK_EXCEPTION(reader.read(9, 2, std::as_writable_bytes(std::span(rows))), io::error, [&](const io::error& e) {
    return e.context().file == file.string() && std::string(e.what()).find('\n') == std::string::npos;
  });
}

/// Found by fuzzing: such a chunk was refused or decoded by what memory other datasets had asked for. libhdf5 reads it.
BOOST_AUTO_TEST_CASE(a_chunk_longer_than_its_filters_make_it_is_left_to_libhdf5_whatever_memory_there_is) {
  const io::filter_chain chain({{2, "shuffle", {4}}}, 64);
  const std::vector<std::byte> stored(80);
  std::vector<std::byte> chunk(64);
  for (const std::size_t spares : {0u, 2u}) {
    io::decode_workspace workspace({.spares = spares, .spare_bytes = 4096});
    BOOST_CHECK_THROW(chain.decode(stored, 0, chunk, workspace), io::not_decodable);
  }
}

/// Streams of zeros that deflate folds into each other, as many times as a chunk has filters. libhdf5 would inflate all
/// of them.
BOOST_AUTO_TEST_CASE(what_a_chunk_inflates_to_is_bounded_whoever_reads_it,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  for (const std::string how :
       {"deflate", "deflate, deflate", "deflate, shuffle, deflate, fletcher32", "scaleoffset, deflate"}) {
    const auto file = made_folder() / "inflates.h5";
    penstock::test::run_python("how, path = '" + how + "'.split(', '), '" + file.string() + "'\n" + R"(
import h5py, numpy, zlib
from h5py import h5d, h5p, h5s, h5t

def summed(data):
    # fletcher32 as HDF5 stores it, by writing the bytes as a chunk of their own
    with h5py.File('summed', 'w', driver='core', backing_store=False) as f:
        d = f.create_dataset('x', data=numpy.frombuffer(data, 'u1'), chunks=(len(data),), fletcher32=True)
        f.flush()
        return d.id.read_direct_chunk((0,))[1]

packer = zlib.compressobj(9)
data = b''.join([packer.compress(bytes(1 << 20)) for n in range(300)] + [packer.flush()])
create = h5p.create(h5p.DATASET_CREATE)
create.set_chunk((64, 8))
for n, name in enumerate(how):
    if name == 'deflate':
        create.set_deflate(9)
        if n > how.index('deflate'):
            data = zlib.compress(data, 9)
    elif name == 'shuffle':
        create.set_shuffle()
        words = len(data) // 4 * 4
        data = numpy.frombuffer(data[:words], 'u1').reshape(-1, 4).T.tobytes() + data[words:]
    elif name == 'fletcher32':
        create.set_fletcher32()
        data = summed(data)
    else:
        create.set_scaleoffset(h5py.h5z.SO_INT, 0)
with h5py.File(path, 'w') as f:
    d = h5d.create(f.id, b'x', h5t.STD_I32LE, h5s.create_simple((64, 8)), dcpl=create)
    d.write_direct_chunk((0, 0), data)
)");
    BOOST_TEST(status_of_child(file, std::size_t{128} << 20) == 0, how);
    const io::row_reader reader({{.file = file, .dataset = "/x"}});
    std::vector<std::byte> rows(reader.rows() * reader.row_bytes());
    BOOST_CHECK_EXCEPTION(reader.read(0, 64, rows), io::error, [](const io::error& e) {
      const auto& named = e.context().rows;
      return e.context().damaged && named.first == 0 && named.count == 64 &&
             std::string(e.what()).find("a filter makes more than") != std::string::npos;
    });
  }
}

/// Texts are read when they are opened.
BOOST_AUTO_TEST_CASE(what_texts_behind_a_virtual_dataset_inflate_to_is_bounded) {
  const auto file = made_folder() / "inflating_texts.h5";
  penstock::test::run_python("path = '" + file.string() + "'\n" + R"(
import h5py, zlib
from h5py import h5d, h5p, h5s, h5t
text = h5t.C_S1.copy()
text.set_size(h5t.VARIABLE)
space = h5s.create_simple((64,))
create = h5p.create(h5p.DATASET_CREATE)
create.set_chunk((64,))
create.set_deflate(9)
create.set_deflate(9)
shown = h5p.create(h5p.DATASET_CREATE)
shown.set_virtual(space, b'.', b'of', space)
with h5py.File(path, 'w') as f:
    d = h5d.create(f.id, b'of', text, space, dcpl=create)
    d.write_direct_chunk((0,), zlib.compress(zlib.compress(bytes(50 << 20), 9), 9))
    h5d.create(f.id, b'x', text, space, dcpl=shown)
)");
  for (const std::string name : {"/of", "/x"})
    BOOST_CHECK_EXCEPTION(io::row_reader({{.file = file, .dataset = name}}), io::error, [](const io::error& e) {
      return e.context().damaged && std::string(e.what()).find("a filter makes more than") != std::string::npos;
    });
}

/// Chunks that went through two deflates, and one whose stream is a little longer than it: libhdf5 reads both.
BOOST_AUTO_TEST_CASE(chunks_that_are_compressed_twice_or_longer_than_they_need_be_are_read) {
  const auto file = made_folder() / "compressed_twice.h5";
  penstock::test::run_python("path = '" + file.string() + "'\n" + R"(
import h5py, numpy, zlib
from h5py import h5d, h5p, h5s, h5t
x = numpy.random.default_rng(1).integers(0, 1 << 20, (200, 8), '<i4')
with h5py.File(path, 'w') as f:
    for name, times in ((b'twice', 2), (b'longer', 1)):
        create = h5p.create(h5p.DATASET_CREATE)
        create.set_chunk((64, 8))
        for n in range(times):
            create.set_deflate(4)
        d = h5d.create(f.id, name, h5t.STD_I32LE, h5s.create_simple((200, 8)), dcpl=create)
        d.write(h5s.ALL, h5s.ALL, x)
    d.write_direct_chunk((64, 0), zlib.compress(x[64:128].tobytes() + bytes(3000)))
x.tofile(path + '.bytes')
)");
  const auto expected = bytes_of_file(file.string() + ".bytes");
  for (const std::string name : {"/twice", "/longer"}) {
    const io::row_reader reader({{.file = file, .dataset = name}});
    std::vector<std::byte> rows(expected.size());
    for (int times = 0; times < 2; ++times) {
      reader.read(0, 200, rows);
      BOOST_TEST((rows == expected), name);
    }
  }
}

/// libhdf5 hands out memory that it never wrote. Read by it alone are the 12-bit integers.
BOOST_AUTO_TEST_CASE(a_chunk_without_filters_that_has_not_its_size_is_damaged_whoever_reads_it) {
  for (const std::string type : {"x", "twelve"})
    for (const int chunk : {0, 3})
      for (const int stored : {0, 64, 2047, 3072}) BOOST_TEST_CONTEXT(type << ", " << stored) {
          const auto file = made_folder() / "wrong_size.h5";
          penstock::test::run_python("path, twelve, n, stored = '" + file.string() + "', '" + type + "' == 'twelve', " +
                                     std::to_string(chunk) + ", " + std::to_string(stored) + R"(
import h5py, numpy, struct
from h5py import h5d, h5p, h5s, h5t
create = h5p.create(h5p.DATASET_CREATE)
create.set_chunk((64, 8))
kind = h5t.STD_I32LE.copy()
if twelve:
    kind.set_precision(12)
x = numpy.arange(640 * 8, dtype='i4').reshape(640, 8) % 2000
with h5py.File(path, 'w') as f:
    d = h5d.create(f.id, b'x', kind, h5s.create_simple((640, 8)), dcpl=create)
    d.write(h5s.ALL, h5s.ALL, x)
    f.flush()
    address = d.get_chunk_info_by_coord((64 * n, 0)).byte_offset
data = open(path, 'rb').read()
key = lambda size: struct.pack('<IIQQQQ', size, 0, 64 * n, 0, 0, address)
assert data.count(key(2048)) == 1
open(path, 'wb').write(data.replace(key(2048), key(stored)))
)");
          const io::row_reader reader({{.file = file, .dataset = "/x"}});
          BOOST_TEST((reader.segments()[0].info.access == (type == "x" ? io::access::direct : io::access::locked)),
                     reader.segments()[0].info.reason);
          std::vector<std::int32_t> rows(640 * 8);
          const auto bytes = std::as_writable_bytes(std::span(rows));
          BOOST_CHECK_EXCEPTION(reader.read(0, 640, bytes), io::error, [&](const io::error& e) {
            const auto& named = e.context().rows;
            return e.context().damaged && named.first == 64u * static_cast<unsigned>(chunk) && named.count == 64 &&
                   std::string(e.what()).find("of 2048 bytes") != std::string::npos;
          });
          reader.read(256, 384, bytes.first(384 * 32));  // the others are sound
          std::size_t wrong = 0;
          for (int n = 0; n < 384 * 8; ++n) wrong += rows[static_cast<std::size_t>(n)] != (256 * 8 + n) % 2000;
          BOOST_TEST(wrong == 0u);
        }
}

BOOST_AUTO_TEST_CASE(a_dataset_of_which_almost_nothing_is_stored_is_read_wherever_one_looks) {
  for (const std::string name : {"/nothing", "/a_little"}) {
    const io::row_reader reader({{.file = made_folder() / "sparse.h5", .dataset = name}});
    BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
    std::vector<std::uint16_t> rows(6);
    reader.read((std::uint64_t{1} << 50) - 2, 2, std::as_writable_bytes(std::span(rows)));
    const auto last = name == "/nothing" ? std::vector<std::uint16_t>{7, 7, 7, 7, 7, 7}
                                         : std::vector<std::uint16_t>{7, 7, 7, 1, 2, 3};
    BOOST_TEST(rows == last, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(where_few_chunks_are_stored_index_and_reading_cost_by_their_number) {
  const auto file = made_folder() / "scattered.h5";
  // The expected bytes are those of the arrays that were written, among fill values.
  penstock::test::run_python(
      "import h5py, numpy as np\nrng = np.random.default_rng(1)\nwith h5py.File('" + file.string() +
      "', 'w') as f:\n  d = f.create_dataset('bytes', (5000000,), 'u1', chunks=(1,), maxshape=(None,), fillvalue=3)\n"
      "  x = np.full(5000000, 3, 'u1')\n  for n in rng.integers(0, 5000000, 2000): d[n] = x[n] = n % 200 + 10\n"
      "  x.tofile('" +
      file.string() +
      ".bytes')\n"
      "  d = f.create_dataset('table', (300000, 6), '<u4', chunks=(2, 2), compression='gzip', shuffle=True, "
      "fillvalue=258)\n  x = np.full((300000, 6), 258, '<u4')\n"
      "  for n in rng.integers(0, 300000, 400): d[n] = x[n] = np.arange(6) + n\n  x.tofile('" +
      file.string() + ".table')\n");
  for (const std::string name : {"bytes", "table"}) BOOST_TEST_CONTEXT(name) {
      const auto expected = bytes_of_file(file.string() + "." + name);
      const io::row_reader reader({{.file = file, .dataset = "/" + name}});
      BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
      std::size_t planned = 0;
      for (const auto& item : reader.memory({.concurrency = 1}))
        if (item.name == "chunk index") planned += item.bytes;
      BOOST_TEST(planned > 0u);
      BOOST_TEST(planned <= 3000u * 24);
      std::vector<std::byte> all(expected.size());
      reader.read(0, reader.rows(), all);
      BOOST_TEST((all == expected));
      std::vector<std::byte> some(777 * reader.row_bytes());
      for (std::uint64_t first = 11; first + 777 < 60000; first += 777) {
        reader.read(first, 777, some);
        BOOST_TEST(std::equal(some.begin(), some.end(),
                              expected.begin() + static_cast<std::ptrdiff_t>(first * reader.row_bytes())));
      }
    }
  // Columns 1 to 3 as rows along the other axis: they cut chunks on both sides.
  const auto expected = bytes_of_file(file.string() + ".table");
  const io::row_reader columns(
      {{.file = file, .dataset = "/table", .row_axis = 1, .region = {{.axis = 0, .first = 5, .count = 200001}}}});
  std::vector<std::uint32_t> read(3 * 200001), whole(300000 * 6);
  columns.read(1, 3, std::as_writable_bytes(std::span(read)));
  std::memcpy(whole.data(), expected.data(), expected.size());
  std::size_t wrong = 0;
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t r = 0; r < 200001; ++r) wrong += read[c * 200001 + r] != whole[(r + 5) * 6 + c + 1];
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
