#include <host/cgroup.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

#include "fake_folder.hpp"

using penstock::gpu::host::cgroup;

namespace {

struct fake_mount : penstock::test::fake_folder {
  fake_mount() : fake_folder("cgroup") {}
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cgroups, fake_mount)

BOOST_AUTO_TEST_CASE(no_group_and_no_quota_are_no_limit) {
  BOOST_TEST(!cgroup(path(), "").processors().has_value());
  write("a/cpu.max", "max 100000\n");
  BOOST_TEST(!cgroup(path(), "0::/a\n").processors().has_value());
}

BOOST_AUTO_TEST_CASE(version_two_takes_the_least_quota_on_the_way_up) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  write("a/b/c/cpu.max", "max 100000\n");
  BOOST_TEST(cgroup(path(), "0::/a/b/c\n").processors().value() == 1.5);
  BOOST_TEST(cgroup(path(), "0::/\n").processors().has_value() == false);
}

BOOST_AUTO_TEST_CASE(a_path_of_the_host_means_the_mount_itself_in_a_container) {
  write("cpu.max", "300000 100000\n");
  BOOST_TEST(cgroup(path(), "0::/not/there\n").processors().value() == 3.0);
}

BOOST_AUTO_TEST_CASE(version_one_is_read_too) {
  write("cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(cgroup(path(), "5:memory:/a\n4:cpu,cpuacct:/a\n0::/a\n").processors().value() == 2.5);
}

BOOST_AUTO_TEST_CASE(page_cache_counts_as_free_memory) {
  write("a/memory.max", "1000000\n");
  write("a/memory.current", "800000\n");
  write("a/memory.stat", "anon 300000\ninactive_file 400000\nactive_file 100000\n");
  const auto limit = cgroup(path(), "0::/a\n").memory_limit().value();
  BOOST_TEST(limit.limit_bytes == 1000000U);
  BOOST_TEST(limit.free_bytes == 700000U);
}

BOOST_AUTO_TEST_CASE(memory_without_a_limit_has_none) {
  write("a/memory.max", "max\n");
  write("a/memory.current", "800000\n");
  BOOST_TEST(!cgroup(path(), "0::/a\n").memory_limit().has_value());
  write("memory/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/b/memory.usage_in_bytes", "1\n");
  BOOST_TEST(!cgroup(path(), "3:memory:/b\n").memory_limit().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
