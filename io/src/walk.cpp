#include "walk.hpp"

#include "object_key.hpp"

#include <set>
#include <vector>

namespace penstock::io {
namespace {

constexpr std::size_t deepest = 1000;  // nesting is the file's to choose

struct walker {
  const std::function<void(const std::string&)>& visit;
  const std::function<void(const std::string&, const std::string&)>& damaged;
  std::set<object_key> seen;

  void fail(const std::string& path) { damaged(path.empty() ? "/" : path, why_not_opened(library_messages())); }

  /// Names of the hard links of a group, in name order.
  bool links(hid_t group, std::vector<std::string>& names) {
    const auto add = [](hid_t, const char* name, const H5L_info_t* info, void* to) -> herr_t {
      if (info->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(to)->emplace_back(name);
      return 0;
    };
    return H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names) >= 0;
  }

  void group(hid_t id, const std::string& path, std::size_t depth) {
    std::vector<std::string> names;
    if (!links(id, names)) fail(path);
    for (const auto& name : names) {
      const auto child = path + '/' + name;
      const object_id object(H5Oopen(id, name.c_str(), H5P_DEFAULT));
      object_key key{};
      unsigned count = 0;
      if (!object || !identify(object.native(), key, count)) {
        fail(child);
        continue;
      }
      const auto kind = H5Iget_type(object.native());
      // A group is remembered whatever its count says: a circle of links must end.
      if ((count > 1 || kind == H5I_GROUP) && !seen.insert(key).second) continue;
      if (kind == H5I_DATASET) visit(child);
      if (kind != H5I_GROUP) continue;
      if (depth == deepest)
        damaged(child, "it is nested too deep");
      else
        group(object.native(), child, depth + 1);
    }
  }
};

}  // namespace

void walk_datasets(hid_t file, const std::string& top, const std::function<void(const std::string&)>& visit,
                   const std::function<void(const std::string&, const std::string&)>& damaged) {
  const library_guard guard;
  walker w{visit, damaged, {}};
  const group_id root(H5Gopen2(file, top.empty() ? "/" : top.c_str(), H5P_DEFAULT));
  object_key key{};
  unsigned count = 0;
  if (!root) return w.fail(top);
  if (identify(root.native(), key, count)) w.seen.insert(key);
  w.group(root.native(), top, 0);
}

}  // namespace penstock::io
