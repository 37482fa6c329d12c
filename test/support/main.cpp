// The main function of a test program: add this file to its sources, and `-- --require-gpu` to its command line.
#define BOOST_TEST_MODULE penstock
#include <boost/test/unit_test.hpp>
