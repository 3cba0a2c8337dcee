// safetensors files: a header in JSON, then the bytes of all arrays
// (https://github.com/huggingface/safetensors).
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

#include "nn/files.h"
#include "nn/named_arrays.h"

namespace renga {
namespace {

constexpr const char* kCaller = "load_safetensors";
constexpr std::string_view kChecksum = "\"renga.crc32\":\"";  // before its eight digits
constexpr std::string_view kNoDigits = "00000000";
// A header names the dtypes so, in the order of Dtype.
constexpr std::string_view kTensorTypes[] = {"BOOL", "U8",  "U16", "U32",  "U64", "I8", "I16",
                                             "I32",  "I64", "F16", "BF16", "F32", "F64"};

// Reads the JSON of the header, as far as it is used: objects, strings, lists of integers.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}

  // Calls visit(name) for each member, which reads its value.
  template <class Visit>
  void object(const Visit& visit) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string name = string();
      expect(':');
      visit(name);
    } while (take(','));
    expect('}');
  }

  std::string string() {
    expect('"');
    std::string value;
    while (position_ < text_.size() && text_[position_] != '"') {
      if (text_[position_] == '\\') {
        ++position_;
        check(position_ < text_.size() &&
              std::string_view("\"\\/").find(text_[position_]) != std::string_view::npos);
      }
      value += text_[position_++];
    }
    expect('"');
    return value;
  }

  Dims integers() {
    Dims values;
    expect('[');
    if (take(']')) return values;
    do {
      skip_space();
      std::int64_t value = -1;
      const char* const begin = text_.data() + position_;
      const auto read = std::from_chars(begin, text_.data() + text_.size(), value);
      check(read.ec == std::errc() && value >= 0);
      position_ += static_cast<std::size_t>(read.ptr - begin);
      values.push_back(value);
    } while (take(','));
    expect(']');
    return values;
  }

 private:
  static void check(bool held) {
    require<std::invalid_argument>(held, kCaller,
                                   ": expected a safetensors file, got a damaged header");
  }
  void skip_space() {
    while (position_ < text_.size() &&
           std::string_view(" \n\r\t").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }
  bool take(char c) {
    skip_space();
    const bool found = position_ < text_.size() && text_[position_] == c;
    position_ += found;
    return found;
  }
  void expect(char c) { check(take(c)); }

  std::string_view text_;
  std::size_t position_ = 0;
};

std::string checksum_of(std::string content, std::size_t digits) {
  content.replace(digits, kNoDigits.size(), kNoDigits);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", checksum(content));
  return text;
}

}  // namespace

void write_safetensors(const std::string& file, const NamedArrays& arrays) {
  // Wide elements come first, so that all are aligned.
  std::vector<const NamedArrays::value_type*> sorted;
  for (const auto& named : arrays) sorted.push_back(&named);
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const auto* named) { return named->second.itemsize(); });
  std::ostringstream header;
  header << "{\"__metadata__\":{" << kChecksum << kNoDigits << "\"}";
  std::string values;
  for (const auto* named : sorted) {
    const auto& [name, x] = *named;
    require<std::invalid_argument>(name.find_first_of("\"\\") == name.npos,
                                   "save_safetensors: expected a name without quotes, got ", name);
    header << ",\"" << name << "\":{\"dtype\":\"" << kTensorTypes[static_cast<int>(x.dtype())]
           << "\",\"shape\":[";
    for (int axis = 0; axis < x.ndim(); ++axis) header << (axis ? "," : "") << x.shape(axis);
    header << "],\"data_offsets\":[" << values.size() << ",";
    values += bytes_of(x);
    header << values.size() << "]}";
  }
  std::string text = header.str() + "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string content;
  append_number(content, static_cast<std::uint64_t>(text.size()));
  content += text + values;
  const std::size_t digits = content.find(kChecksum) + kChecksum.size();
  content.replace(digits, kNoDigits.size(), checksum_of(content, digits));
  write_file(file, content);
}

NamedArrays read_safetensors(const std::string& file) {
  const std::string content = read_file(file);
  const std::string_view all = content;
  const auto length = number_at<std::uint64_t>(all, 0, kCaller);
  const std::string_view header = part_of(all, 8, length, kCaller);
  const std::size_t mark = header.find(kChecksum);
  if (mark != header.npos) {
    const std::size_t digits = 8 + mark + kChecksum.size();
    const std::string_view found = part_of(all, digits, kNoDigits.size(), kCaller);
    require<std::invalid_argument>(checksum_of(content, digits) == found, kCaller,
                                   ": expected an undamaged file, got another checksum in '", file,
                                   "'");
  }
  const std::string_view values = all.substr(8 + length);
  NamedArrays arrays;
  Json json(header);
  json.object([&](const std::string& name) {
    if (name == "__metadata__") return json.object([&](const std::string&) { json.string(); });
    std::string kind;
    Dims shape, offsets;
    json.object([&](const std::string& field) {
      if (field == "dtype") {
        kind = json.string();
      } else {
        (field == "shape" ? shape : offsets) = json.integers();
      }
    });
    const auto* type = std::ranges::find(kTensorTypes, kind);
    require<std::invalid_argument>(
        type != std::end(kTensorTypes) && offsets.size() == 2 && offsets[0] <= offsets[1], kCaller,
        ": expected a dtype and offsets for ", name);
    const auto dtype = static_cast<Dtype>(type - std::begin(kTensorTypes));
    const std::size_t bytes = checked_bytes(shape, dtype, kCaller);
    require<std::invalid_argument>(static_cast<std::size_t>(offsets[1] - offsets[0]) == bytes,
                                   kCaller, ": expected ", bytes, " bytes for ", name, ", got ",
                                   offsets[1] - offsets[0]);
    arrays[name] = array_of(part_of(values, static_cast<std::size_t>(offsets[0]), bytes, kCaller),
                            shape, dtype);
  });
  return arrays;
}

}  // namespace renga
