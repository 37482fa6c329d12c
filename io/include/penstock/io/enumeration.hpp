#pragma once

#include <penstock/fault.hpp>
#include <penstock/io/location.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::io {

/// A value of an enumeration, and its name.
struct enum_member {
  std::int64_t value = 0;
  std::string name;
};

/// The members of the enumeration that a dataset's values are of, in the order of their values; empty where they are of
/// none. row_reader gives such values as the numbers that they are stored as. `where` may name a member of compounds,
/// DATASET[MEMBER]. Thread-safe. Throws io::error where the file or the dataset cannot be read.
std::vector<enum_member> enumeration_of(const location& where, fault_seam faults = {});

}  // namespace penstock::io
