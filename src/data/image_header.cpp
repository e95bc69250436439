// SPDX-License-Identifier: Apache-2.0
// Walks image containers far enough to know their size and that they are whole. Decoders fill in
// missing data silently (libjpeg) or print (libpng), so both are caught here.
#include "data/image_header.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "data/pixels.h"

namespace quench::data {
namespace {

// Any image of up to 4 megapixels is fine; above that, even the best compression needs a byte for
// every so many pixels.
constexpr std::int64_t kFreePixels = std::int64_t{1} << 22;
constexpr std::int64_t kPixelsPerByte = 16384;

/// Bounded access to the bytes of a file.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size(); }
  std::uint32_t at(std::size_t index) const {
    if (index >= bytes_.size()) fail(ErrorKind::BadData, "the image file is cut off");
    return std::to_integer<std::uint32_t>(bytes_[index]);
  }
  std::uint32_t big16(std::size_t i) const { return at(i) << 8U | at(i + 1); }
  std::uint32_t big32(std::size_t i) const { return big16(i) << 16U | big16(i + 2); }
  std::uint32_t little16(std::size_t i) const { return at(i + 1) << 8U | at(i); }
  std::uint32_t little32(std::size_t i) const { return little16(i + 2) << 16U | little16(i); }
  bool matches(std::size_t index, std::string_view text) const {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (index + i >= size() || at(index + i) != static_cast<unsigned char>(text[i])) return false;
    }
    return true;
  }
  const unsigned char* data() const {
    return reinterpret_cast<const unsigned char*>(bytes_.data());
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Size {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

bool is_frame_header(std::uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

bool stands_alone(std::uint32_t marker) {
  return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

// The position of the next marker after entropy-coded data.
std::size_t skip_scan(const Bytes& file, std::size_t pos) {
  while (true) {
    const std::uint32_t next = file.at(pos) == 0xFF ? file.at(pos + 1) : 0;
    if (next != 0 && next != 0xFF && !(next >= 0xD0 && next <= 0xD7)) return pos;
    ++pos;
  }
}

Size jpeg_size(const Bytes& file) {
  Size size;
  std::size_t pos = 2;
  while (true) {
    if (file.at(pos) != 0xFF) fail(ErrorKind::BadData, "the JPEG file is damaged at byte {}", pos);
    while (file.at(pos) == 0xFF) ++pos;
    const std::uint32_t marker = file.at(pos++);
    if (marker == 0xD9) return size;
    if (stands_alone(marker)) continue;
    const std::uint32_t length = file.big16(pos);
    if (length < 2) fail(ErrorKind::BadData, "the JPEG file is damaged at byte {}", pos);
    if (is_frame_header(marker)) size = {file.big16(pos + 5), file.big16(pos + 3)};
    pos += length;
    if (marker == 0xDA) pos = skip_scan(file, pos);
  }
}

Size png_size(const Bytes& file) {
  if (!file.matches(12, "IHDR")) fail(ErrorKind::BadData, "the PNG file is damaged");
  const Size size{file.big32(16), file.big32(20)};
  std::size_t pos = 8;
  while (true) {
    const std::size_t length = file.big32(pos);
    if (length > file.size() || pos + 12 + length > file.size()) {
      fail(ErrorKind::BadData, "the image file is cut off");
    }
    const uLong sum = crc32(0, file.data() + pos + 4, static_cast<uInt>(length + 4));
    if (sum != file.big32(pos + 8 + length)) {
      fail(ErrorKind::BadData, "the PNG file is damaged: a checksum is wrong");
    }
    if (file.matches(pos + 4, "IEND")) return size;
    pos += 12 + length;
  }
}

// Decoders print when pixels are missing, so plain ones are counted. Sizes beyond the bound are
// refused by the caller.
void expect_pixels(const Bytes& file, std::uint64_t offset, std::int64_t row_bytes, Size size) {
  if (size.width > kMaxPixels || size.height > kMaxPixels / std::max<std::int64_t>(size.width, 1)) {
    return;
  }
  const auto needed = static_cast<std::uint64_t>(row_bytes * size.height);
  if (offset > file.size() || needed > file.size() - offset) {
    fail(ErrorKind::BadData, "the image file is cut off");
  }
}

Size bmp_size(const Bytes& file) {
  const bool old = file.little32(14) == 12;
  Size size{file.little16(18), file.little16(20)};
  if (!old) {
    const std::int64_t height = static_cast<std::int32_t>(file.little32(22));
    size = {static_cast<std::int32_t>(file.little32(18)), height < 0 ? -height : height};
  }
  const std::int64_t bits = file.little16(old ? 24 : 28);
  const bool packed = !old && file.little32(30) != 0 && file.little32(30) != 3;
  const std::int64_t row_bytes = (size.width * bits + 31) / 32 * 4;
  if (!packed && size.width > 0) expect_pixels(file, file.little32(10), row_bytes, size);
  return size;
}

Size webp_size(const Bytes& file) {
  if (std::uint64_t{file.little32(4)} + 8 > file.size()) {
    fail(ErrorKind::BadData, "the image file is cut off");
  }
  const auto little24 = [&](std::size_t i) { return file.little16(i) | file.at(i + 2) << 16U; };
  if (file.matches(12, "VP8X")) return {little24(24) + 1, little24(27) + 1};
  if (file.matches(12, "VP8L")) {
    const std::uint32_t bits = file.little32(21);
    return {(bits & 0x3FFFU) + 1, (bits >> 14U & 0x3FFFU) + 1};
  }
  return {file.little16(26) & 0x3FFFU, file.little16(28) & 0x3FFFU};
}

bool is_blank(std::uint32_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::int64_t pnm_number(const Bytes& file, std::size_t& pos) {
  while (is_blank(file.at(pos)) || file.at(pos) == '#') {
    if (file.at(pos) == '#') {
      while (file.at(pos) != '\n') ++pos;
    }
    ++pos;
  }
  std::int64_t number = 0;
  while (file.at(pos) >= '0' && file.at(pos) <= '9' && number < kMaxPixels) {
    number = number * 10 + file.at(pos++) - '0';
  }
  return number;
}

Size pnm_size(const Bytes& file) {
  std::size_t pos = 2;
  Size size;
  size.width = pnm_number(file, pos);
  size.height = pnm_number(file, pos);
  const std::int64_t largest = pnm_number(file, pos);
  const std::int64_t channels = file.at(1) == '6' ? 3 : 1;
  const std::int64_t pixel_bytes = channels * (largest > 255 ? 2 : 1);
  expect_pixels(file, pos + 1, size.width * pixel_bytes, size);
  return size;
}

Size any_size(const Bytes& file) {
  if (file.size() == 0) fail(ErrorKind::BadData, "the file is empty");
  if (file.matches(0, "\xFF\xD8\xFF")) return jpeg_size(file);
  if (file.matches(0, "\x89PNG\r\n\x1A\n")) return png_size(file);
  if (file.matches(0, "BM")) return bmp_size(file);
  if (file.matches(0, "RIFF") && file.matches(8, "WEBP")) return webp_size(file);
  if (file.matches(0, "P5") || file.matches(0, "P6")) return pnm_size(file);
  fail(ErrorKind::BadData, "not an image that can be read (JPEG, PNG, BMP, WebP, PGM or PPM)");
}

}  // namespace

ImageSize check_image(std::span<const std::byte> bytes) {
  const Size size = any_size(Bytes(bytes));
  if (size.width < 1 || size.height < 1) {
    fail(ErrorKind::BadData, "the image has an impossible size of {}x{}", size.width, size.height);
  }
  constexpr std::int64_t kMaxBytes = kMaxPixels / kPixelsPerByte;
  const auto justified = std::min(static_cast<std::int64_t>(bytes.size()), kMaxBytes);
  const std::int64_t limit = std::max(kFreePixels, justified * kPixelsPerByte);
  if (size.width > limit || size.height > limit / size.width) {
    fail(ErrorKind::BadData, "the image claims {}x{} pixels, more than {} bytes can justify",
         size.width, size.height, bytes.size());
  }
  return {static_cast<int>(size.width), static_cast<int>(size.height)};
}

}  // namespace quench::data
