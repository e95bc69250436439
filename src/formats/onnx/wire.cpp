// SPDX-License-Identifier: Apache-2.0
// Tags, lengths and the map of messages that lead to tensors.
#include "formats/onnx/wire.h"

#include "base/format.h"

namespace quench::onnx {

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
    value |= (byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail(ErrorKind::BadModel, "the file is damaged: a number in it has no end; get it again");
}

std::span<const std::byte> WireReader::take(std::uint64_t size) {
  if (size > rest_.size()) {
    fail(ErrorKind::BadModel,
         "the file is truncated or damaged: a field of {} bytes has only {} left; get it again",
         size, rest_.size());
  }
  const auto taken = rest_.first(static_cast<std::size_t>(size));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::byte* begin = rest_.data();
  const std::uint64_t tag = varint();
  WireField field;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  if (tag >> 3 == 0 || tag >> 32 != 0) {
    fail(ErrorKind::BadModel,
         "the file is damaged or not ONNX: it has no valid field where one "
         "should start; get it again");
  }
  switch (field.type) {
    case WireType::Varint:
      (void)varint();
      break;
    case WireType::Fixed64:
      (void)take(8);
      break;
    case WireType::Fixed32:
      (void)take(4);
      break;
    case WireType::Bytes:
      field.body = take(varint());
      break;
    default:
      fail(ErrorKind::BadModel,
           "the file is damaged or not ONNX: field {} has the unknown wire "
           "type {}; get it again",
           field.number, tag & 7);
  }
  field.whole = {begin, rest_.data()};
  return field;
}

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_header(std::string& out, std::uint32_t number, std::uint64_t size) {
  append_varint(out, (std::uint64_t{number} << 3) | static_cast<std::uint64_t>(WireType::Bytes));
  append_varint(out, size);
}

void append_bytes(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<MessageKind> child_of(MessageKind kind, std::uint32_t field) noexcept {
  switch (kind) {
    case MessageKind::Model:
      if (field == 7) return MessageKind::Graph;
      if (field == 25) return MessageKind::Function;
      break;
    case MessageKind::Graph:
      if (field == 1) return MessageKind::Node;
      if (field == 5) return MessageKind::Tensor;
      break;
    case MessageKind::Node:
      if (field == 5) return MessageKind::Attribute;
      break;
    case MessageKind::Attribute:
      if (field == 5 || field == 10) return MessageKind::Tensor;
      if (field == 6 || field == 11) return MessageKind::Graph;
      break;
    case MessageKind::Function:
      if (field == 7) return MessageKind::Node;
      if (field == 11) return MessageKind::Attribute;
      break;
    case MessageKind::Tensor:
      break;
  }
  return std::nullopt;
}

}  // namespace quench::onnx
