// What holds a run up, in a sentence, from figures made by hand.
#include "mean_workers.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace pp = penstock::pipeline;

BOOST_AUTO_TEST_SUITE(bottleneck)

BOOST_AUTO_TEST_CASE(the_bottleneck_is_one_sentence_beside_what_the_machine_gives) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.consumer_wait_seconds = 8;
  r.reading.stored_bytes = 19'000'000'000;
  r.stages.push_back({.name = "read", .blocks = 1, .bytes = 19'000'000'000, .workers = 12, .mean_at_work = 11.5});
  r.consumer_waits = {{"not yet read (threads are reading)", 3, "read"}, {"being read", 4, "read"}, {"in x", 1, "x"}};
  BOOST_TEST(bottleneck_of(r) ==
             "reading: 1.90 GB/s, 11.5 of 12 workers at work; the consumer waited 80 % of the time, 70 % for this");
  r.limits.storage_bytes_per_second = 2e9;
  BOOST_TEST(bottleneck_of(r) ==
             "reading: 1.90 GB/s of the 2.00 GB/s that the storage gives; more threads will not help; the consumer "
             "waited 80 % of the time, 70 % for this");
  r.stages.front().mean_at_work = 4;  // it is there when the consumer asks, mostly
  r.limits.storage_bytes_per_second = 8e9;
  r.consumer_wait_seconds = 3;
  r.consumer_waits = {{"being read", 3, "read"}};
  BOOST_TEST(bottleneck_of(r) ==
             "the consumer: at work 70 % of the time; beside it reading: 1.90 GB/s of the 8.00 GB/s that the storage "
             "gives, 4.0 of 12 workers at work; the consumer waited 30 % of the time, 30 % for this");
  r.stages.front().mean_at_work =
      2;  // all wait for each other: who is at work for a quarter of the time holds up nobody
  r.consumer_wait_seconds = 7.2;
  r.consumer_waits = {{"being read", 7.2, "read"}};
  BOOST_TEST(bottleneck_of(r).find("reading: 1.90 GB/s of the 8.00 GB/s") == 0u);
  r.limits.storage_bytes_per_second = 2e9;  // nothing would make it faster
  BOOST_TEST(bottleneck_of(r).find("reading: 1.90 GB/s of the 2.00 GB/s") == 0u);
  r.consumer_wait_seconds = 8;
  r.consumer_waits = {{"waiting for a slot", 8, "copy"}};
  r.stages.push_back({.name = "copy (issued)", .bytes = 460'000'000'000, .workers = 1});
  r.limits.link_bytes_per_second = 55e9;
  BOOST_TEST(bottleneck_of(r) ==
             "the link: 46.00 GB/s of the 55.00 GB/s that it carries; the consumer waited 80 % of the time, 80 % for "
             "this");
  r.consumer_wait_seconds = 0.1;
  r.device_stall.seconds = 0.1;
  BOOST_TEST(bottleneck_of(r) == "the consumer: batches were ready 98.0 % of the time");
  r.device_stall.seconds = 5;
  BOOST_TEST(bottleneck_of(r) ==
             "the link: 46.00 GB/s of the 55.00 GB/s that it carries; the consumer's stream waited 50 % of the time on "
             "the device");
}

BOOST_AUTO_TEST_CASE(the_text_of_a_report_says_what_share_of_the_limits_was_used) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.stages = {{.name = "read", .workers = 12}, {.name = "copy (issued)", .bytes = 460'000'000'000, .workers = 1}};
  r.reading.stored_bytes = 230'000'000'000;
  r.device_stall.applies = true;
  BOOST_TEST(to_text(r).find(" % of what the ") == std::string::npos);
  r.limits = {.link_bytes_per_second = 50e9, .storage_bytes_per_second = 92e9};
  BOOST_TEST(to_text(r).find("\n  copied, 92 % of what the link gives\n") != std::string::npos, to_text(r));
  BOOST_TEST(to_text(r).find(" read, 23.00 GB/s, 25 % of what the storage gives; ") != std::string::npos, to_text(r));
  r.device_stall.applies = false;  // the host has no link
  BOOST_TEST(to_text(r).find("copied") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_higher_concurrency_is_advised_only_where_it_would_give_more) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.stages = {{.name = "read", .blocks = 1, .bytes = 1, .workers = 8, .mean_at_work = 1},
              {.name = "augment", .blocks = 1, .bytes = 19'000'000'000, .workers = 2, .mean_at_work = 2}};
  r.consumer_wait_seconds = 9;
  r.consumer_waits = {{"augment", 9, "augment"}};
  const std::string advice = "a higher concurrency would help";
  BOOST_TEST(bottleneck_of(r).find(advice) != std::string::npos, bottleneck_of(r));
  r.stages.back().workers_are_all = true;
  BOOST_TEST(bottleneck_of(r).find("augment: ") == 0u, bottleneck_of(r));
  BOOST_TEST(bottleneck_of(r).find(advice) == std::string::npos, bottleneck_of(r));
}

BOOST_AUTO_TEST_CASE(
    the_link_is_blamed_for_what_a_stream_waits_only_where_it_is_near_its_limit_or_nothing_else_is_there) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.device_stall.seconds = 9;
  r.stages.push_back({.name = "copy (issued)", .blocks = 1, .bytes = 5'000'000'000, .workers = 1});
  BOOST_TEST(bottleneck_of(r) ==
             "the link: 0.50 GB/s are copied; the consumer's stream waited 90 % of the time on the device");
  r.stages.push_back({.name = "gather (issued)", .blocks = 1, .bytes = 5'000'000'000, .workers = 1});
  r.stages.push_back({.name = "augment (issued)", .blocks = 1, .bytes = 5'000'000'000, .workers = 1});
  BOOST_TEST(bottleneck_of(r) ==
             "copies (0.50 GB/s), or what comes after them on the device: gather, augment; the consumer's stream "
             "waited 90 % of the time on the device");
  r.limits.link_bytes_per_second = 51e9;
  BOOST_TEST(bottleneck_of(r) ==
             "what comes after the copies on the device: gather, augment; the link carries 0.50 GB/s of 51.00 GB/s; "
             "the consumer's stream waited 90 % of the time on the device");
  r.stages.front().bytes = 31'000'000;
  BOOST_TEST(bottleneck_of(r).find("carries 3.1 MB/s of 51.00 GB/s") != std::string::npos, bottleneck_of(r));
  r.stages.front().bytes = 460'000'000'000;
  BOOST_TEST(bottleneck_of(r) ==
             "the link: 46.00 GB/s of the 51.00 GB/s that it carries; the consumer's stream waited 90 % of the time on "
             "the device");
}

namespace {

/// Lines of pipeline/measured/h100-chunked.json: rates of link and storage there, the run's seconds and rate, waits by
/// stage.
pp::pipeline_report h100_run(double seconds, double gb_per_s, std::vector<pp::time_charge> waits) {
  pp::pipeline_report r;
  r.seconds = seconds;
  const auto bytes = static_cast<std::uint64_t>(seconds * gb_per_s * 1e9);
  r.reading.stored_bytes = bytes;
  r.stages.push_back({.name = "read", .bytes = bytes, .workers = 12, .mean_at_work = 11.8});
  r.stages.push_back({.name = "copy (issued)", .bytes = bytes, .workers = 1});
  for (const pp::time_charge& wait : waits) r.consumer_wait_seconds += wait.seconds;
  r.consumer_waits = std::move(waits);
  r.limits = {.link_bytes_per_second = 51.13e9, .storage_bytes_per_second = 88.44e9};
  return r;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_link_near_its_limit_is_named_before_what_waits_were_charged_to) {
  // Batches of 256 rows, 1024 rows, 16384 rows, each in the file's order.
  auto late = h100_run(9.61, 46.26,
                       {{"being handed over", 2.17, "handing over"},
                        {"being read", 1.77, "read"},
                        {"waiting to be copied", 1.96, "copy"},
                        {"waiting for its turn", 0.82, "order"}});
  BOOST_TEST(
      bottleneck_of(late) ==
      "the link: 46.26 GB/s of the 51.13 GB/s that it carries; the consumer waited 70 % of the time, 23 % charged "
      "to handing over");
  const auto read = h100_run(10.93, 44.24,
                             {{"being read", 4.63, "read"},
                              {"waiting to be copied", 3.41, "copy"},
                              {"being handed over", 0.86, "handing over"},
                              {"being issued", 0.93, "gather"}});
  BOOST_TEST(
      bottleneck_of(read) ==
      "the link: 44.24 GB/s of the 51.13 GB/s that it carries; the consumer waited 90 % of the time, 42 % charged "
      "to read");
  const auto large = h100_run(10.1, 47.5,
                              {{"being read", 4.04, "read"},
                               {"waiting to be copied", 3.3, "copy"},
                               {"being handed over", 1.26, "handing over"},
                               {"being issued", 1.3, "gather"}});
  BOOST_TEST(bottleneck_of(large).find("the link: 47.50 GB/s of the 51.13 GB/s") == 0u);
  const auto copied = h100_run(9.98, 48.21, {{"waiting to be copied", 4, "copy"}, {"being read", 3.92, "read"}});
  BOOST_TEST(bottleneck_of(copied).find("40 % for this") != std::string::npos);
  // Further from it, and where its limit is not known, the waits decide.
  const auto slower = h100_run(10, 42.9, {{"being read", 4, "read"}, {"waiting to be copied", 3, "copy"}});
  BOOST_TEST(bottleneck_of(slower).find("reading: 42.90 GB/s of the 88.44 GB/s") == 0u);
  late.limits.link_bytes_per_second.reset();
  BOOST_TEST(bottleneck_of(late).find("handing over: threads are woken late") == 0u);
}

BOOST_AUTO_TEST_CASE(storage_nearer_to_its_limit_and_rows_that_are_held_come_before_the_link) {
  auto r = h100_run(10, 46, {{"being read", 6, "read"}, {"waiting to be copied", 3, "copy"}});
  r.limits.storage_bytes_per_second = 47e9;
  BOOST_TEST(bottleneck_of(r).find("reading: 46.00 GB/s of the 47.00 GB/s that the storage gives") == 0u);
  r = h100_run(10, 46, {{"waiting for free rows", 6, "consumer"}, {"waiting to be copied", 3, "copy"}});
  BOOST_TEST(bottleneck_of(r).find("rows that the consumer still holds") == 0u);
}

BOOST_AUTO_TEST_CASE(more_processors_are_no_advice_where_readers_wait_for_one_chunk) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.consumer_wait_seconds = 9;
  r.consumer_waits = {{"being decoded", 9, "decode"}};
  r.reading = {.stored_bytes = 1'000'000'000, .decoded_bytes = 5'000'000'000, .read_seconds = 1};
  r.stages.push_back({.name = "read", .bytes = 5'000'000'000, .busy_seconds = 40, .workers = 4, .mean_at_work = 4});
  const auto sentence = [&](double seconds_of_decoding) {
    r.reading.decode_seconds = seconds_of_decoding;
    return bottleneck_of(r);
  };
  BOOST_TEST(sentence(35) ==
             "decoding: 0.50 GB/s of rows out of 0.10 GB/s of stored bytes, 4.0 of 4 workers at work; more processors "
             "would help; the consumer waited 90 % of the time, 90 % for this");
  BOOST_TEST(sentence(9) ==
             "decoding: 0.50 GB/s of rows out of 0.10 GB/s of stored bytes, 4.0 of 4 workers at work; 75 % of their "
             "time they wait for a chunk that another decodes, or copy rows out of one: smaller chunks of whole rows "
             "would help; the consumer waited 90 % of the time, 90 % for this");
  r.reading.decoded_bytes = 0;
  BOOST_TEST(sentence(35) ==
             "converting: 0.10 GB/s of stored bytes, 4.0 of 4 workers at work; more processors would help; the "
             "consumer waited 90 % of the time, 90 % for this");
}

BOOST_AUTO_TEST_CASE(a_larger_budget_is_advised_where_the_plan_would_take_it) {
  pp::pipeline_report r;
  r.seconds = r.consumer_wait_seconds = 1;
  r.memory = {{"slots", 64, 64, true}, {"rings", 64, 64, false}};
  r.consumer_waits = {{"waiting for a slot", 1, "slots"}};
  BOOST_TEST(bottleneck_of(r).find("slots: all are in use; a larger budget would help; ") == 0u);
  r.memory[0].cut_short = false;
  BOOST_TEST(bottleneck_of(r).find("slots: all are in use; the consumer waited") == 0u);
  r.consumer_waits = {{"waiting for free rows", 1, "consumer"}};
  BOOST_TEST(bottleneck_of(r).find("rows that the consumer still holds; the consumer waited") == 0u);
  r.memory[1].cut_short = true;
  BOOST_TEST(bottleneck_of(r).find("rows that the consumer still holds; a larger budget would help; ") == 0u);
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_no_stages_is_named_too) {
  pp::pipeline_report r;
  r.seconds = r.consumer_wait_seconds = 1;
  r.consumer_waits = {{"not in the line yet (the run begins)", 1, "beginning"}};
  BOOST_TEST(bottleneck_of(r).find("the beginning of the run: ") == 0u);
  r.consumer_waits.clear();
  BOOST_TEST(bottleneck_of(r).find("handing over: ") == 0u);
}

BOOST_AUTO_TEST_CASE(workers_that_were_more_for_a_while_are_counted_in_the_mean) {
  pp::pipeline_report r;
  r.seconds = 10;
  r.consumer_wait_seconds = 4;
  r.consumer_waits = {{"being read", 4, "read"}};
  r.reading.stored_bytes = 20'000'000'000;
  // One now, at work all the time; three for a twentieth of it, one of whom was idle.
  r.stages.push_back({.name = "read",
                      .bytes = 20'000'000'000,
                      .busy_seconds = 10.5,
                      .wait_seconds = 0.5,
                      .waits = {{"a free slot", 0.5, "slots"}},
                      .workers = 1,
                      .mean_at_work = 1.05});
  BOOST_TEST(mean_workers(r.stages.front()) == 1.1, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(bottleneck_of(r) ==
             "reading: 2.00 GB/s, 1.1 of 1.1 workers at work; the consumer waited 40 % of the time, 40 % for this");
  // Seldom at work: who holds it up is the consumer, however few workers there are now.
  r.stages.front().busy_seconds = 4;
  r.stages.front().wait_seconds = 7;
  r.stages.front().mean_at_work = 0.4;
  BOOST_TEST(bottleneck_of(r) ==
             "the consumer: at work 60 % of the time; beside it reading: 2.00 GB/s, 0.4 of 1.1 workers at work; the "
             "consumer waited 40 % of the time, 40 % for this");
}

BOOST_AUTO_TEST_CASE(stages_whose_waits_are_not_known_have_the_workers_there_are) {
  BOOST_TEST(pp::mean_workers({.name = "gather", .busy_seconds = 2, .workers = 1, .mean_at_work = 0.2}) == 1);
  BOOST_TEST(pp::mean_workers({.name = "read", .wait_seconds = 1, .waits = {{"x", 1, "x"}}, .workers = 2}) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
