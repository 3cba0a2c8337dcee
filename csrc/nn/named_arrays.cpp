#include "nn/named_arrays.h"

#include <algorithm>

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

// Finds the arrays of a module in `stored` by the names that `name_of` makes of theirs.
template <class NameOf>
void load(const nn::Module& module, const NamedArrays& stored, const NameOf& name_of) {
  std::vector<std::pair<Array, Variable>> found;
  for (const auto& [path, x] : module.arrays()) {
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
  for (const auto& [array, x] : found) {
    x.body()->set_array(to_device(renga::copy_of(cast(array, x.dtype())), x.device()));
  }
}

NamedArrays arrays_of(const nn::Module& module) {
  NamedArrays arrays;
  for (const auto& [path, x] : module.arrays()) arrays[path] = x.array();
  return arrays;
}

}  // namespace

void save_npz(const nn::Module& module, const std::string& file) {
  write_npz(file, arrays_of(module));
}

void load_npz(const nn::Module& module, const std::string& file) {
  load(module, read_npz(file), [](const std::string& path) { return path; });
}

void save_safetensors(const nn::Module& module, const std::string& file) {
  NamedArrays arrays;
  for (const auto& [path, x] : arrays_of(module)) arrays[with_dots(path)] = x;
  write_safetensors(file, arrays);
}

void load_safetensors(const nn::Module& module, const std::string& file) {
  load(module, read_safetensors(file), with_dots);
}

}  // namespace renga
