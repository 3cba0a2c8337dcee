#include "nn/inflate.h"

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tensor/error.h"

namespace renga {
namespace {

class Inflater {
 public:
  Inflater(std::string_view in, std::size_t size) : in_(in), size_(size) {
    out_.reserve(size);
    bool is_last = false;
    while (!is_last) {
      is_last = bits(1) != 0;
      const unsigned kind = bits(2);
      check(kind < 3);
      kind == 0 ? copy_stored() : decompress(kind == 2);
    }
    check(out_.size() == size_);
  }
  std::string take() { return std::move(out_); }

 private:
  // The codes of symbols, by their lengths: how many there are of each, and the symbols in order.
  struct Codes {
    explicit Codes(std::span<const std::uint8_t> lengths) {
      for (const std::uint8_t length : lengths) ++count[length];
      count[0] = 0;
      std::array<unsigned, 17> first{};
      for (std::size_t i = 1; i < 16; ++i) first[i + 1] = first[i] + count[i];
      symbols.resize(lengths.size());
      for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        if (lengths[symbol] != 0) {
          symbols[first[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
        }
      }
    }
    std::array<unsigned, 16> count{};
    std::vector<std::uint16_t> symbols;
  };

  static void check(bool held) {
    require<std::invalid_argument>(held, "inflate: expected deflated bytes, got damaged ones");
  }

  unsigned bits(int n) {
    while (held_ < n) {
      check(position_ < in_.size());
      buffer_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(in_[position_++])) << held_;
      held_ += 8;
    }
    const auto value = static_cast<unsigned>(buffer_ & ((std::uint64_t{1} << n) - 1));
    buffer_ >>= n;
    held_ -= n;
    return value;
  }

  unsigned symbol(const Codes& codes) {
    unsigned code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length < 16; ++length) {
      code |= bits(1);
      const unsigned count = codes.count[length];
      if (code < first + count) return codes.symbols[index + (code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    check(false);
    return 0;
  }

  void copy_stored() {
    bits(held_ % 8);
    const unsigned length = bits(16);
    check((bits(16) ^ length) == 0xFFFF);
    for (unsigned i = 0; i < length; ++i) append(static_cast<char>(bits(8)));
  }

  void append(char byte) {
    check(out_.size() < size_);
    out_.push_back(byte);
  }

  void decompress(bool has_codes) {
    std::vector<std::uint8_t> lengths(320, 8);
    std::size_t literals = 288;
    if (has_codes) {
      literals = read_lengths(lengths);
    } else {
      std::fill(lengths.begin() + 144, lengths.begin() + 256, std::uint8_t{9});
      std::fill(lengths.begin() + 256, lengths.begin() + 280, std::uint8_t{7});
      std::fill(lengths.begin() + 288, lengths.end(), std::uint8_t{5});
    }
    const std::span all(lengths);
    const Codes literal_codes(all.first(literals)), distance_codes(all.subspan(literals));
    for (unsigned next = symbol(literal_codes); next != 256; next = symbol(literal_codes)) {
      if (next < 256) {
        append(static_cast<char>(next));
      } else {
        copy_earlier(next, distance_codes);
      }
    }
  }

  void copy_earlier(unsigned code, const Codes& distance_codes) {
    check(code < 286);
    unsigned length = 258;
    if (code < 285) {
      const int extra = code < 265 ? 0 : static_cast<int>((code - 261) / 4);
      const unsigned base = code < 265 ? code - 254 : ((4 + (code - 265) % 4) << extra) + 3;
      length = base + bits(extra);
    }
    const unsigned step = symbol(distance_codes);
    check(step < 30);
    const int extra = step < 4 ? 0 : static_cast<int>(step / 2 - 1);
    const std::size_t base = step < 4 ? step + 1 : ((2 + step % 2) << extra) + 1;
    const std::size_t distance = base + bits(extra);
    check(distance <= out_.size());
    for (unsigned i = 0; i < length; ++i) append(out_[out_.size() - distance]);
  }

  // The lengths of the codes of literals and of distances; returns how many literals there are.
  std::size_t read_lengths(std::vector<std::uint8_t>& lengths) {
    static constexpr std::uint8_t kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                              11, 4,  12, 3, 13, 2, 14, 1, 15};
    const std::size_t literals = bits(5) + 257, distances = bits(5) + 1, given = bits(4) + 4;
    std::array<std::uint8_t, 19> of_lengths{};
    for (std::size_t i = 0; i < given; ++i)
      of_lengths[kOrder[i]] = static_cast<std::uint8_t>(bits(3));
    const Codes codes(of_lengths);
    lengths.clear();
    while (lengths.size() < literals + distances) {
      const unsigned next = symbol(codes);
      if (next < 16) {
        lengths.push_back(static_cast<std::uint8_t>(next));
        continue;
      }
      check(next > 16 || !lengths.empty());
      const std::uint8_t repeated = next == 16 ? lengths.back() : std::uint8_t{0};
      const unsigned times = next == 16 ? 3 + bits(2) : next == 17 ? 3 + bits(3) : 11 + bits(7);
      lengths.insert(lengths.end(), times, repeated);
    }
    check(lengths.size() == literals + distances);
    return literals;
  }

  std::string_view in_;
  std::size_t size_, position_ = 0;
  std::string out_;
  std::uint64_t buffer_ = 0;
  int held_ = 0;  // bits in the buffer
};

}  // namespace

std::string inflate(std::string_view deflated, std::size_t size) {
  return Inflater(deflated, size).take();
}

}  // namespace renga
