#include "nn/named_arrays.h"

#include <algorithm>
#include <functional>

namespace renga {
namespace {

std::string with_dots(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

// Whether loading keeps the kind of number: floats fit floats, integers fit integers and floats.
bool fits(Dtype stored, Dtype wanted) {
  return is_float(wanted) || (!is_float(stored) && wanted != Dtype::bool_) || stored == wanted;
}

// Finds arrays in `stored` by the names that `name_of` makes of theirs, and writes to them.
template <class NameOf>
void load(const StoredArrays& of, const NamedArrays& stored, const NameOf& name_of) {
  std::vector<std::pair<Array, Variable>> found;
  for (const auto& [path, x] : of.arrays) {
    const std::string name = name_of(path);
    const auto entry = stored.find(name);
    require<std::out_of_range>(entry != stored.end(), "serializer: expected an array called ", name,
                               ", got none");
    const Array& array = entry->second;
    require<std::invalid_argument>(array.shape() == x.shape(), "serializer: ", name,
                                   ": expected an array of shape ", x.shape(), ", got ",
                                   array.shape());
    require<std::invalid_argument>(fits(array.dtype(), x.dtype()), "serializer: ", name,
                                   ": expected an array that fits ", x.dtype(), ", got one of ",
                                   array.dtype());
    found.emplace_back(array, x);
  }
  for (const auto& [array, x] : found) copy(array, x.body()->writable_array());
}

template <class NameOf>
NamedArrays by_name(const StoredArrays& of, const NameOf& name_of) {
  NamedArrays arrays;
  for (const auto& [path, x] : of.arrays) arrays[name_of(path)] = x.array();
  return arrays;
}

}  // namespace

void save_npz(const StoredArrays& of, const std::string& file) {
  write_npz(file, by_name(of, std::identity()));
}

void load_npz(const StoredArrays& of, const std::string& file) {
  load(of, read_npz(file), std::identity());
}

void save_safetensors(const StoredArrays& of, const std::string& file) {
  write_safetensors(file, by_name(of, with_dots));
}

void load_safetensors(const StoredArrays& of, const std::string& file) {
  load(of, read_safetensors(file), with_dots);
}

}  // namespace renga
