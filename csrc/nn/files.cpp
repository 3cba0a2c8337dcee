#include "nn/files.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tensor/extents.h"

namespace renga {

std::string read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  require<std::runtime_error>(in.good(), "read: expected a file, got '", file, "'");
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& file, std::string_view content) {
  // What is no regular file, such as /dev/null or a pipe, is written in place.
  const bool in_place = std::filesystem::exists(file) && !std::filesystem::is_regular_file(file);
  const std::string part = in_place ? file : file + ".part";
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.flush();
    require<std::runtime_error>(out.good(), "write: expected a file that can be written, got '",
                                file, "'");
  }
  if (!in_place) std::filesystem::rename(part, file);
}

std::string bytes_of(const Array& x) {
  const Array dense = contiguous(to_device(x, {}));
  return {reinterpret_cast<const char*>(dense.data()),
          static_cast<std::size_t>(dense.size() * dense.itemsize())};
}

Array array_of(std::string_view bytes, const Shape& shape, Dtype dtype) {
  const Array x = empty(shape, dtype);
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

std::uint32_t checksum(std::string_view bytes) {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(crc32_z(0, data, bytes.size()));
}

std::string inflated(std::string_view deflated, std::size_t size) {
  constexpr int kWithoutHeader = -MAX_WBITS;
  std::string bytes(size, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(deflated.data()));
  stream.avail_in = static_cast<uInt>(deflated.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(size);
  require<std::runtime_error>(inflateInit2(&stream, kWithoutHeader) == Z_OK,
                              "inflate: expected memory for zlib, got none");
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  require<std::invalid_argument>(result == Z_STREAM_END && stream.total_out == size,
                                 "inflate: expected deflated bytes, got damaged ones");
  return bytes;
}

std::size_t checked_bytes(const Shape& shape, Dtype dtype, const char* what) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) {
    require<std::invalid_argument>(extent >= 0, what, ": expected extents, got ", shape);
    bytes = saturated_product(bytes, extent);
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace renga
