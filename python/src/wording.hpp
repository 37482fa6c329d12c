#pragma once

#include <string>

namespace penstock::python {

/// A sentence of the library's with Python's names for what it advises: `held` for batch_options::held.
std::string in_python(std::string sentence);

}  // namespace penstock::python
