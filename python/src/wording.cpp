#include "wording.hpp"

#include <string_view>

namespace penstock::python {
namespace {

struct wording {
  std::string_view cpp, python;
};

constexpr wording wordings[] = {
    {"release it, or raise batch_options::held",
     "copy what is needed later (x.clone()), or make the loader with a larger `held`"},
    {"release them before the next run",
     "another place can begin when the arrays of their rows are deleted (del x); those in functions that an error "
     "ended "
     "are held by its traceback, until the next error"},
    {"(mix_options::rows)", "(rows of mixed())"},
    {"its batch_rows is ", "its batch_size, of all ranks together, is "},
    {"its last_batch is ", "its `last` is "},
    {", and this pipeline's ", ", and this loader's "},
    {"(batch_options::last)", "(last='pad' or 'drop')"},
    {"batch_options::rows", "batch_size"},
    {"transport_options::threads", "threads"},
    {"transport_options::slots", "slots"},
    {"set allow_missing_sources of the options it is read with (field_options of a pipeline, or read_options)",
     "say source.reading(allow_missing_sources=True)"},
    {"describe the pipeline with traced(), so that", "make the loader with trace='8MiB', so that"},
    {"(a selection of row numbers, weighted::weights)", "(row numbers in select(), weights in Weighted())"},
    {"penstock-inspect lists what the file holds", "penstock.inspect() lists what the file holds"},
    {"damage_policy::skip (--damaged skip:ROWS) leaves such rows out", "source.skip_damaged() leaves such rows out"},
    {"the JSON text that pipeline::state() returned", "what state_dict() returned"},
};

}  // namespace

std::string in_python(std::string sentence) {
  for (const wording& words : wordings) {
    const std::size_t at = sentence.find(words.cpp);
    if (at != std::string::npos) sentence.replace(at, words.cpp.size(), words.python);
  }
  return sentence;
}

}  // namespace penstock::python
