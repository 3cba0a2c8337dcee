// Files of arrays that are damaged or do not fit. That intact ones are read is compared with Python
// in tests/cpp.
#include "nn/named_arrays.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "nn/files.h"
#include "nn/layers.h"

namespace renga {
namespace {

struct File {
  explicit File(const char* ending)
      : path(std::filesystem::temp_directory_path() /
             ("renga_test_" + std::to_string(getpid()) + ending)) {}
  ~File() { std::filesystem::remove(path); }
  const std::string path;
};

NamedArrays two_arrays() {
  return {{"a/W", full({2, 3}, 0.5, Dtype::float32)}, {"b", full({}, 3, Dtype::int64)}};
}

// Reads each beginning of a file, which has to throw, and the file with each bit of a byte changed.
template <class Read>
void read_damaged(const std::string& path, const Read& read) {
  const std::string intact = read_file(path);
  for (std::size_t length = 0; length < intact.size(); ++length) {
    write_file(path, intact.substr(0, length));
    CHECK_THROWS(read(path));
  }
  for (std::size_t i = 0; i < intact.size(); ++i) {
    std::string damaged = intact;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    write_file(path, damaged);
    try {
      read(path);
    } catch (const std::exception&) {  // most changes are noticed; none may do more
    }
  }
}

}  // namespace

TEST_CASE("damaged files of arrays throw") {
  const File npz(".npz"), safetensors(".safetensors");
  write_npz(npz.path, two_arrays());
  read_damaged(npz.path, read_npz);
  write_safetensors(safetensors.path, two_arrays());
  read_damaged(safetensors.path, read_safetensors);
  CHECK_THROWS_AS(read_npz("/nowhere/at.all"), std::runtime_error);
}

TEST_CASE("what is no regular file is written in place") {
  const File link(".device");
  std::filesystem::create_symlink("/dev/null", link.path);
  write_npz(link.path, two_arrays());
  CHECK(std::filesystem::is_symlink(link.path));
  CHECK(std::filesystem::is_character_file(link.path));
}

TEST_CASE("loading changes nothing unless all arrays fit") {
  const File file(".npz");
  nn::Module net;
  const nn::Linear layer(net, "layer", {.in = 3, .out = 2, .W = initializers::constant(7)});
  const NamedArrays fitting{{"layer/W", full({2, 3}, 1, Dtype::float64)},
                            {"layer/b", full({2}, 2, Dtype::float32)}};
  const auto with_b = [&](const Array& b) {
    NamedArrays arrays = fitting;
    arrays["layer/b"] = b;
    write_npz(file.path, arrays);
  };
  with_b(zeros({3}, Dtype::float32));
  CHECK_THROWS_WITH_AS(load_npz(net, file.path),
                       "serializer: layer/b: expected an array of shape (2,), got (3,)",
                       std::invalid_argument);
  write_npz(file.path, {{"layer/W", fitting.at("layer/W")}});
  CHECK_THROWS_WITH_AS(load_npz(net, file.path),
                       "serializer: expected an array called layer/b, got none", std::out_of_range);
  CHECK(layer.W.array().as<float>()[0] == 7);
  write_npz(file.path, fitting);
  load_npz(net, file.path);
  CHECK(layer.W.array().as<float>()[0] == 1);
  CHECK(layer.b->array().as<float>()[1] == 2);
}

TEST_CASE("names of a module are new and no paths") {
  nn::Module net;
  const nn::LayerNormalization first(net, "norm", {.size = 2});
  CHECK_THROWS_AS(nn::LayerNormalization(net, "norm", {.size = 2}), std::invalid_argument);
  CHECK_THROWS_AS(nn::LayerNormalization(net, "a/b", {.size = 2}), std::invalid_argument);
}

}  // namespace renga
