// Module: a part of a network, with parameters and other modules that have names.
//
//   struct Net : nn::Module {
//     nn::Linear hidden{*this, "hidden", {.in = 784, .out = 100}};
//     nn::Linear out{*this, "out", {.in = 100, .out = 10}};
//     Variable operator()(const Variable& x) const { return out(relu(hidden(x))); }
//   };
//
// Parameters are Variables, which are shared handles: a copy of one is the same parameter.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "nn/initializers.h"

namespace renga {

// A parameter, or another array of a module, with its path, such as hidden/W.
using NamedVariable = std::pair<std::string, Variable>;

namespace nn {

// Modules register themselves by their address, so they are neither copied nor moved.
class Module {
 public:
  Module() = default;
  // A child of `parent`, which outlives it.
  Module(Module& parent, const std::string& name);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  // Returns the parameters of this module and of its children, in the order of Python's links: by
  // name, this module's own ones first.
  std::vector<NamedVariable> parameters() const;
  // Returns the parameters and the persistent arrays, which are stored but not trained.
  std::vector<NamedVariable> arrays() const;
  // The paths of parameters of which each of several ranks has a part, and which part is this
  // one's.
  std::vector<std::pair<std::string, int>> parts() const;

  // Clears the gradients: backward passes add to them.
  void cleargrads() const;
  void to_device(Device device) const;

 protected:
  // A parameter of this module with initial values.
  Variable parameter(const std::string& name, const Shape& shape, const Initializer& initial,
                     Dtype dtype = Dtype::float32);
  Variable persistent(const std::string& name, const Array& array);
  // Notes that this module's own parameters are part `part` of those that ranks share out.
  void set_part(int part) { part_ = part; }

 private:
  void require_new(const std::string& name) const;
  // Calls visit(path, module) for this module and its children; paths are empty or end with a /.
  template <class Visit>
  void for_each_module(const std::string& path, const Visit& visit) const;

  std::vector<NamedVariable> parameters_, persistent_;
  std::vector<std::pair<std::string, const Module*>> children_;
  std::optional<int> part_;
};

// Evaluation within a scope: as using_config("train", False) and no_backprop_mode() in Python.
struct Evaluation {
  SettingScope<bool> no_training{&Settings::training, false};
  SettingScope<bool> no_backprop{&Settings::backprop, false};
};

}  // namespace nn
}  // namespace renga
