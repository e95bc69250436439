// SPDX-License-Identifier: Apache-2.0
// Parses the header of .npy files: a Python dictionary literal of three keys.
#include <algorithm>
#include <bit>
#include <charconv>
#include <set>
#include <string_view>

#include "base/format.h"
#include "data/npy.h"

namespace quench::data {
namespace {

constexpr std::size_t kMaxRank = 32;

[[noreturn]] void damaged(std::string_view what) {
  fail(ErrorKind::BadData, "the .npy header is damaged: {}", what);
}

/// The dictionary literal that NumPy writes, and nothing more of Python.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  void parse(NpyHeader& header) {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      if (!seen_.insert(key).second) damaged("a key is there twice");
      expect(':');
      if (key == "descr") {
        parse_type(header);
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        damaged("unknown key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen_.size() != 3) damaged("it needs descr, fortran_order and shape");
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) damaged(format("expected '{}'", c));
  }
  std::string_view quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"'))
      damaged("expected a string");
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) damaged("a string does not end");
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    damaged("fortran_order must be True or False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = -1;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (code != std::errc{} || size < 0) damaged("a dimension is not a number of elements");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      shape.push_back(size);
      if (shape.size() > kMaxRank) damaged("too many dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void parse_type(NpyHeader& header) {
    skip_blanks();
    if (!rest_.empty() && rest_.front() == '[') {
      fail(ErrorKind::Unsupported, "structured arrays are not supported; save one plain array");
    }
    const std::string descr(quoted());
    if (descr.size() < 2) damaged("descr is too short");
    header.big_endian = descr.front() == '>';
    const std::string_view kind = std::string_view(descr).substr(1);
    for (const DTypeInfo& row : all_dtypes()) {
      if (row.numpy.size() > 1 && row.numpy.substr(1) == kind) header.dtype = row.dtype;
    }
    if (header.dtype == DType::Undefined ||
        std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
      fail(ErrorKind::Unsupported, "arrays of type '{}' are not supported; save numbers", descr);
    }
  }

  std::string_view rest_;
  std::set<std::string_view> seen_;
};

std::size_t byte_at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<std::size_t>(bytes[index]);
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::uint64_t file_size) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) fail(ErrorKind::BadData, "not an .npy file");
  if (bytes.size() < 12) fail(ErrorKind::BadData, "the .npy file is cut off");
  const std::size_t version = byte_at(bytes, 6);
  if (version < 1 || version > 3) {
    fail(ErrorKind::Unsupported, ".npy version {} is not supported (1 to 3 are)", version);
  }
  std::size_t length = byte_at(bytes, 8) | byte_at(bytes, 9) << 8U;
  if (version > 1) length |= byte_at(bytes, 10) << 16U | byte_at(bytes, 11) << 24U;
  const std::size_t begin = version > 1 ? 12 : 10;
  if (length > kMaxNpyHeader - begin || length > bytes.size() - begin) {
    fail(ErrorKind::BadData, "the .npy file is cut off in its header of {} bytes", length);
  }
  NpyHeader header;
  HeaderParser(text.substr(begin, length)).parse(header);
  header.data_offset = begin + length;
  const auto count = num_elements(header.shape);
  const auto wanted = count ? num_bytes(header.dtype, *count) : std::nullopt;
  const std::uint64_t there = file_size - header.data_offset;
  if (!wanted || *wanted > there) {
    fail(ErrorKind::BadData, "the .npy file is cut off: {} of {} need more than its {} bytes",
         to_string(header.shape), name_of(header.dtype), there);
  }
  return header;
}

}  // namespace quench::data
