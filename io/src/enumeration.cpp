#include <penstock/io/enumeration.hpp>

#include "describe.hpp"
#include "open_hdf5.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

namespace penstock::io {
namespace {

/// The type of a compound's member `name`; that of `a.b` is looked for in the member a.
type_id member_type(const type_id& compound, const std::string& name) {
  if (H5Tget_class(compound.native()) != H5T_COMPOUND) return type_id(H5Tcopy(compound.native()));
  if (const int n = H5Tget_member_index(compound.native(), name.c_str()); n >= 0)
    return type_id(checked(H5Tget_member_type(compound.native(), static_cast<unsigned>(n)), "a member has no type"));
  const auto dot = name.find('.');
  const int outer = H5Tget_member_index(compound.native(), name.substr(0, dot).c_str());
  if (dot == std::string::npos || outer < 0) throw failure("its members cannot be read");
  return member_type(
      type_id(checked(H5Tget_member_type(compound.native(), static_cast<unsigned>(outer)), "a member has no type")),
      name.substr(dot + 1));
}

std::vector<enum_member> members_of(const type_id& type) {
  std::vector<enum_member> members;
  if (H5Tget_class(type.native()) != H5T_ENUM) return members;
  const type_id base(checked(H5Tget_super(type.native()), "its base type cannot be read"));
  std::array<std::byte, 64> bytes{};  // room for the value as it is stored, and as it becomes
  if (H5Tget_size(base.native()) > bytes.size()) throw failure("values of its enumeration are wider than any integer");
  const int count = checked(H5Tget_nmembers(type.native()), "its members cannot be counted");
  for (unsigned n = 0; n < static_cast<unsigned>(count); ++n) {
    checked(H5Tget_member_value(type.native(), n, bytes.data()), "a member's value cannot be read");
    checked(H5Tconvert(base.native(), H5T_NATIVE_INT64, 1, bytes.data(), nullptr, H5P_DEFAULT),
            "a member's value cannot be converted");
    const std::unique_ptr<char, herr_t (*)(void*)> name(H5Tget_member_name(type.native(), n), H5free_memory);
    if (name == nullptr) throw failure("a member's name cannot be read");
    enum_member& member = members.emplace_back(enum_member{.value = 0, .name = name.get()});
    std::memcpy(&member.value, bytes.data(), sizeof member.value);
  }
  std::sort(members.begin(), members.end(),
            [](const enum_member& a, const enum_member& b) { return a.value < b.value; });
  return members;
}

}  // namespace

std::vector<enum_member> enumeration_of(const location& where, fault_seam faults) {
  const error_context context{
      .file = where.file.string(), .dataset = where.dataset, .rows = {}, .hdf5 = {}, .system = 0};
  return with_context(context, [&] {
    probe(where.file, faults, faults);
    const library_guard guard;
    const file_id file = open_hdf5(where.file, faults);
    const open_dataset dataset(file.native(), where.dataset);
    const type_id stored(checked(H5Dget_type(dataset.id.native()), "its datatype cannot be read"));
    auto members =
        members_of(dataset.member.empty() ? type_id(H5Tcopy(stored.native())) : member_type(stored, dataset.member));
    H5Eclear2(H5E_DEFAULT);
    return members;
  });
}

}  // namespace penstock::io
