#include "nn/module.h"

#include <algorithm>
#include <cstddef>

namespace renga::nn {
namespace {

// Numbers, which layers of a Sequential have as names, are in their own order.
std::pair<std::size_t, std::string> sort_key(const std::string& name) {
  return {name[0] >= '0' && name[0] <= '9' ? name.size() : 0, name};
}

template <class T>
void insert_by_name(std::vector<std::pair<std::string, T>>& sorted, const std::string& name,
                    const T& value) {
  const auto at = std::ranges::lower_bound(sorted, sort_key(name), {},
                                           [](const auto& x) { return sort_key(x.first); });
  sorted.insert(at, {name, value});
}

}  // namespace

Module::Module(Module& parent, const std::string& name) {
  parent.require_new(name);
  insert_by_name<const Module*>(parent.children_, name, this);
}

void Module::require_new(const std::string& name) const {
  const auto is_named = [&](const auto& x) { return x.first == name; };
  require<std::invalid_argument>(!name.empty() && name.find('/') == std::string::npos &&
                                     std::ranges::none_of(parameters_, is_named) &&
                                     std::ranges::none_of(persistent_, is_named) &&
                                     std::ranges::none_of(children_, is_named),
                                 "Module: expected a new name without /, got '", name, "'");
}

Variable Module::parameter(const std::string& name, const Shape& shape, const Initializer& initial,
                           Dtype dtype) {
  require_new(name);
  const Array array = empty(shape, dtype);
  initial(array);
  const Variable x(array, true);
  x.node()->name = name;
  insert_by_name(parameters_, name, x);
  return x;
}

Variable Module::persistent(const std::string& name, const Array& array) {
  require_new(name);
  const Variable x(array);
  insert_by_name(persistent_, name, x);
  return x;
}

template <class Visit>
void Module::for_each_module(const std::string& path, const Visit& visit) const {
  visit(path, *this);
  for (const auto& [name, child] : children_) child->for_each_module(path + name + "/", visit);
}

std::vector<NamedVariable> Module::parameters() const {
  std::vector<NamedVariable> all;
  for_each_module("", [&](const std::string& path, const Module& module) {
    for (const auto& [name, x] : module.parameters_) all.emplace_back(path + name, x);
  });
  return all;
}

std::vector<NamedVariable> Module::arrays() const {
  std::vector<NamedVariable> all;
  for_each_module("", [&](const std::string& path, const Module& module) {
    for (const auto& [name, x] : module.parameters_) all.emplace_back(path + name, x);
    for (const auto& [name, x] : module.persistent_) all.emplace_back(path + name, x);
  });
  return all;
}

std::vector<std::pair<std::string, int>> Module::parts() const {
  std::vector<std::pair<std::string, int>> all;
  for_each_module("", [&](const std::string& path, const Module& module) {
    if (!module.part_) return;
    for (const auto& [name, x] : module.parameters_) all.emplace_back(path + name, *module.part_);
  });
  return all;
}

void Module::cleargrads() const {
  for (const auto& [name, x] : parameters()) x.body()->grad = {};
}

void Module::to_device(Device device) const {
  for (const auto& [name, x] : arrays()) {
    x.body()->set_array(renga::to_device(x.array(), device));
    Variable& grad = x.body()->grad;
    if (grad.defined()) grad = Variable(renga::to_device(grad.array(), device));
  }
}

}  // namespace renga::nn
