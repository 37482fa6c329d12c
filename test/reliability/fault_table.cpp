#include "fault_table.hpp"

#include "resources.hpp"
#include "watchdog.hpp"

#include <penstock/gpu/error.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/io/error.hpp>
#include <penstock/pipeline/error.hpp>
#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdio>

namespace penstock::test {

outcome outcome_of(const std::function<std::string()>& work) {
  try {
    return {work(), ""};
  } catch (const pipeline::error& e) {
    return {fmt::format("pipeline::error ({})", e.where().stage), e.what()};
  } catch (const pipeline::stopped& e) {
    return {"pipeline::stopped", e.what()};
  } catch (const io::error& e) {
    return {"io::error", e.what()};
  } catch (const train::error& e) {
    return {"train::error", e.what()};
  } catch (const gpu::error& e) {
    return {"gpu::error", e.what()};
  } catch (const std::exception& e) {
    return {std::string("std::exception"), e.what()};
  }
}

fault_table& fault_table::of_this_program() {
  static fault_table table;
  return table;
}

void fault_table::note(const std::string& stage, const std::string& fault, const std::string& on, const outcome& how,
                       std::chrono::steady_clock::time_point since) {
  auto found = std::find_if(rows_.begin(), rows_.end(),
                            [&](const row& r) { return r.stage == stage && r.fault == fault && r.on == on; });
  if (found == rows_.end()) found = rows_.insert(rows_.end(), row{.stage = stage, .fault = fault, .on = on});
  ++found->outcomes[how.name];
  if (!how.sentence.empty()) found->longest = std::max<decltype(found->longest)>(found->longest, how.at - since);
}

fault_table::~fault_table() {
  if (rows_.empty()) return;
  std::printf("\n| stage | fault | on | outcomes, and how often | told within ms |\n|---|---|---|---|---|\n");
  for (const row& r : rows_) {
    std::string text;
    for (const auto& [name, count] : r.outcomes)
      text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", name, count);
    const std::string told = r.longest.count() > 0 ? fmt::format("{:.1f}", r.longest.count()) : "";
    std::printf("| %s | %s | %s | %s | %s |\n", r.stage.c_str(), r.fault.c_str(), r.on.empty() ? "any" : r.on.c_str(),
                text.c_str(), told.c_str());
  }
}

// What the library promises its callers, and no measure of speed: a thousand times what it takes on a quiet machine,
// and room for sanitizers and for machines that others use, too.
void check_promptness(const outcome& how, std::chrono::steady_clock::time_point since) {
  constexpr std::chrono::duration<double> promised{1};
  if (how.sentence.empty()) return;
  const std::chrono::duration<double> took = how.at - since;
  BOOST_TEST((took < promised), "told after " << took.count() << " s: " << how.sentence);
}

void try_positions(const fault_case& what) {
  std::int64_t tried = 0;
  what.afterwards();  // what a process takes once and keeps, as a device's context, is no leak
  for (std::int64_t n = 0; n < what.most; n += n < 16 ? 1 : n / 4) {
    const std::string here = fmt::format("{}, {}, {} at use {}", what.stage, what.fault, what.on, n);
    BOOST_TEST_CONTEXT(here) {
      const watchdog watched(here);
      const resources before = held_now();
      const outcome how = what.run(n);
      resources after = held_now();
      if (what.keeps_objects) after.cuda.objects = before.cuda.objects;
      BOOST_TEST((after == before), "leaks: " << before << " before, " << after << " after");
      if (!what.happened()) {
        BOOST_TEST(how.sentence.empty(), "no fault, and yet: " << how.sentence);
        break;
      }
      ++tried;
      fault_table::of_this_program().note(what.stage, what.fault, what.on, how, what.since());
      check_promptness(how, what.since());
      BOOST_TEST(what.expected(how), how.name << ": " << how.sentence);
      BOOST_TEST(how.sentence.find('\n') == std::string::npos, "no single sentence: " << how.sentence);
      what.afterwards();
    }
  }
  BOOST_TEST(tried > 0, what.stage << ", " << what.fault << ": the fault never took place");
}

}  // namespace penstock::test
