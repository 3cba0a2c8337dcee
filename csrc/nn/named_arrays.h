// Arrays in files, by name: NumPy's npz archives and safetensors files. Parameters have the names
// by which Python stores them, so either side reads the files of the other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/module.h"

namespace renga {

using NamedArrays = std::map<std::string, Array>;

// A file is replaced at once, when all is written. Reading throws std::invalid_argument for a file
// that is damaged or of another format, and std::runtime_error where there is none.
void write_npz(const std::string& file, const NamedArrays& arrays);
NamedArrays read_npz(const std::string& file);
void write_safetensors(const std::string& file, const NamedArrays& arrays);
NamedArrays read_safetensors(const std::string& file);

// Files hold these arrays of a module or an optimizer, which is passed where this is an argument.
struct StoredArrays {
  template <class Owner>
  requires requires(const Owner& owner) { owner.arrays(); }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for its owner.
  StoredArrays(const Owner& owner) : arrays(owner.arrays()) {}

  std::vector<NamedVariable> arrays;
};

// These functions write and read the parameters and persistent arrays of a module, or the states of
// an optimizer. Loading writes to its arrays. It throws std::out_of_range for a name that is
// missing, and changes nothing if it throws.
void save_npz(const StoredArrays& of, const std::string& file);
void load_npz(const StoredArrays& of, const std::string& file);
void save_safetensors(const StoredArrays& of, const std::string& file);
void load_safetensors(const StoredArrays& of, const std::string& file);

}  // namespace renga
