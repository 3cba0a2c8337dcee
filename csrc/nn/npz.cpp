// NumPy's npz archives: a zip archive with a member NAME.npy for each array.
#include <charconv>

#include "nn/files.h"
#include "nn/named_arrays.h"
#include "tensor/views.h"

namespace renga {
namespace {

constexpr const char* kWhat = "load_npz";
constexpr std::uint32_t kMember = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyType {
  std::string_view descr;
  Dtype dtype;
};
constexpr NpyType kTypes[] = {
    {"|b1", Dtype::bool_},   {"|u1", Dtype::uint8},   {"<u2", Dtype::uint16},
    {"<u4", Dtype::uint32},  {"<u8", Dtype::uint64},  {"|i1", Dtype::int8},
    {"<i2", Dtype::int16},   {"<i4", Dtype::int32},   {"<i8", Dtype::int64},
    {"<f2", Dtype::float16}, {"<f4", Dtype::float32}, {"<f8", Dtype::float64},
};

std::string npy_of(const Array& array) {
  // NumPy has no bfloat16; Python reads these as float32, too.
  const Array x = array.dtype() == Dtype::bfloat16 ? cast(array, Dtype::float32) : array;
  const auto* type = kTypes;
  while (type->dtype != x.dtype()) ++type;
  std::ostringstream text;
  text << "{'descr': '" << type->descr << "', 'fortran_order': False, 'shape': " << x.shape()
       << ", }";
  std::string header = text.str();
  header.append(64 - (kMagic.size() + 4 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string npy(kMagic);
  npy += {'\1', '\0'};
  append_number(npy, static_cast<std::uint16_t>(header.size()));
  return npy + header + bytes_of(x);
}

// Returns what follows `key` in a header.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  require<std::invalid_argument>(at != header.npos, kWhat, ": expected ", key, " in a header, got ",
                                 header);
  return header.substr(at + key.size());
}

Array array_of_npy(const std::string& name, std::string_view npy) {
  require<std::invalid_argument>(npy.starts_with(kMagic), kWhat, ": expected an array called ",
                                 name, ", got other bytes");
  const auto version = number_at<std::uint8_t>(npy, 6, kWhat);
  const std::size_t start = version == 1 ? 10 : 12;
  const std::size_t length = version == 1 ? number_at<std::uint16_t>(npy, 8, kWhat)
                                          : number_at<std::uint32_t>(npy, 8, kWhat);
  const std::string_view header = part_of(npy, start, length, kWhat);
  std::string_view descr = value_of(header, "'descr': '");
  descr = descr.substr(0, descr.find('\''));
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const NpyType& t) { return t.descr == descr; });
  require<std::invalid_argument>(type != std::end(kTypes), kWhat, ": expected numbers as ", name,
                                 ", got ", descr);
  std::string_view extents = value_of(header, "'shape': (");
  extents = extents.substr(0, extents.find(')'));
  Shape shape;
  while (extents.find_first_of("0123456789") != extents.npos) {
    extents.remove_prefix(extents.find_first_of("0123456789"));
    std::int64_t extent = -1;
    const auto read = std::from_chars(extents.data(), extents.data() + extents.size(), extent);
    require<std::invalid_argument>(read.ec == std::errc(), kWhat, ": expected a shape, got ",
                                   header);
    extents.remove_prefix(static_cast<std::size_t>(read.ptr - extents.data()));
    shape.push_back(extent);
  }
  const std::size_t bytes = checked_bytes(shape, type->dtype, kWhat);
  const std::string_view values = part_of(npy, start + length, bytes, kWhat);
  if (value_of(header, "'fortran_order': ").starts_with("False")) {
    return array_of(values, shape, type->dtype);
  }
  Axes reversed, extents_reversed;
  for (int axis = shape.size(); axis-- > 0;) {
    reversed.push_back(axis);
    extents_reversed.push_back(shape[axis]);
  }
  return transpose_view(array_of(values, extents_reversed, type->dtype), reversed);
}

}  // namespace

void write_npz(const std::string& file, const NamedArrays& arrays) {
  std::string content, directory;
  for (const auto& [name, array] : arrays) {
    const std::string member = name + ".npy", npy = npy_of(array);
    require<std::length_error>(content.size() + npy.size() < 0xFFFF0000 && arrays.size() < 0xFFFF,
                               "save_npz: expected less than 4 GiB in all, got more");
    std::string fields;
    append_number<std::uint16_t>(fields, 20);          // version
    append_number<std::uint16_t>(fields, 0x800);       // names are UTF-8
    append_number<std::uint16_t>(fields, 0);           // stored
    append_number<std::uint32_t>(fields, 0x00210000);  // 1980-01-01, so that files can be compared
    append_number(fields, checksum(npy));
    append_number(fields, static_cast<std::uint32_t>(npy.size()));
    append_number(fields, static_cast<std::uint32_t>(npy.size()));
    append_number(fields, static_cast<std::uint16_t>(member.size()));
    append_number<std::uint16_t>(fields, 0);  // extra fields
    append_number(directory, kEntry);
    append_number<std::uint16_t>(directory, 20);
    directory += fields;
    directory.append(10, '\0');  // comment, disk and attributes
    append_number(directory, static_cast<std::uint32_t>(content.size()));
    directory += member;
    append_number(content, kMember);
    content += fields + member + npy;
  }
  const std::size_t start = content.size();
  content += directory;
  append_number(content, kEnd);
  append_number<std::uint32_t>(content, 0);  // disks
  append_number(content, static_cast<std::uint16_t>(arrays.size()));
  append_number(content, static_cast<std::uint16_t>(arrays.size()));
  append_number(content, static_cast<std::uint32_t>(directory.size()));
  append_number(content, static_cast<std::uint32_t>(start));
  append_number<std::uint16_t>(content, 0);  // comment
  write_file(file, content);
}

NamedArrays read_npz(const std::string& file) {
  const std::string content = read_file(file);
  const std::string_view zip = content;
  std::string end_mark;
  append_number(end_mark, kEnd);
  const std::size_t end = zip.rfind(end_mark);
  require<std::invalid_argument>(end != zip.npos, kWhat, ": expected an npz archive, got '", file,
                                 "'");
  part_of(zip, end, kEndBytes, kWhat);
  const auto count = number_at<std::uint16_t>(zip, end + 10, kWhat);
  std::size_t at = number_at<std::uint32_t>(zip, end + 16, kWhat);
  NamedArrays arrays;
  for (int i = 0; i < count; ++i) {
    require<std::invalid_argument>(number_at<std::uint32_t>(zip, at, kWhat) == kEntry, kWhat,
                                   ": expected an entry of an archive in '", file, "'");
    const auto method = number_at<std::uint16_t>(zip, at + 10, kWhat);
    const auto crc = number_at<std::uint32_t>(zip, at + 16, kWhat);
    const auto stored = number_at<std::uint32_t>(zip, at + 20, kWhat);
    const auto size = number_at<std::uint32_t>(zip, at + 24, kWhat);
    const auto length = number_at<std::uint16_t>(zip, at + 28, kWhat);
    const std::size_t member = number_at<std::uint32_t>(zip, at + 42, kWhat);
    std::string name(part_of(zip, at + 46, length, kWhat));
    at += 46u + length + number_at<std::uint16_t>(zip, at + 30, kWhat) +
          number_at<std::uint16_t>(zip, at + 32, kWhat);
    const std::size_t start = member + 30 + number_at<std::uint16_t>(zip, member + 26, kWhat) +
                              number_at<std::uint16_t>(zip, member + 28, kWhat);
    const std::string_view packed = part_of(zip, start, stored, kWhat);
    require<std::invalid_argument>(method == 0 || method == 8, kWhat,
                                   ": expected stored or deflated arrays, got method ", method);
    const std::string npy = method == 0 ? std::string(packed) : inflated(packed, size);
    require<std::invalid_argument>(checksum(npy) == crc, kWhat, ": expected an undamaged ", name,
                                   ", got another checksum");
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays.insert_or_assign(name, array_of_npy(name, npy));
  }
  return arrays;
}

}  // namespace renga
