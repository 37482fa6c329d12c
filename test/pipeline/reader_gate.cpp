#include "reader_gate.hpp"

#include <boost/test/unit_test.hpp>

#include <new>
#include <vector>

namespace pp = penstock::pipeline;

BOOST_AUTO_TEST_SUITE(reader_gate)

BOOST_AUTO_TEST_CASE(a_block_that_a_worker_could_not_be_given_is_not_inside) {
  bool refuse = true;
  std::vector<std::uint64_t> read;
  pp::reader_gate gate(1, 1, false,
                       {.to_workers =
                            [&](pp::ticket t) {
                              if (refuse) throw std::bad_alloc();
                              read.push_back(t.block);
                            },
                        .read = {},
                        .pass_on = {},
                        .readers = {}});
  BOOST_CHECK_THROW(gate.let_in({0, 7}), std::bad_alloc);
  refuse = false;
  gate.let_in({0, 8});
  BOOST_TEST(read == (std::vector<std::uint64_t>{8}), boost::test_tools::per_element());
  gate.let_in({1, 9});  // waits: one reads at a time
  BOOST_TEST(read.size() == 1u);
  gate.worker_done();
  BOOST_TEST(read == (std::vector<std::uint64_t>{8, 9}), boost::test_tools::per_element());
  gate.worker_done();
}

BOOST_AUTO_TEST_SUITE_END()
