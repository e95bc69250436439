// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format, walked by hand where weights must not be copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace quench::onnx {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

/// One field of a message.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::Varint;
  std::span<const std::byte> whole;  ///< tag, length and content
  std::span<const std::byte> body;   ///< the content of Bytes
};

/// Reads the fields of one message; throws Error(BadModel) on bytes that are not protobuf.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}
  std::optional<WireField> next();

 private:
  std::uint64_t varint();
  std::span<const std::byte> take(std::uint64_t size);

  std::span<const std::byte> rest_;
};

void append_varint(std::string& out, std::uint64_t value);
/// The tag and length that open a Bytes field.
void append_header(std::string& out, std::uint32_t number, std::uint64_t size);
void append_bytes(std::string& out, std::span<const std::byte> bytes);

/// The messages on the way from a model to its tensors.
enum class MessageKind { Model, Graph, Node, Attribute, Function, Tensor };
/// What the field of a message holds, if it leads to tensors.
std::optional<MessageKind> child_of(MessageKind kind, std::uint32_t field) noexcept;

/// Messages inside messages; protobuf itself stops at 100.
inline constexpr int kMaxMessageDepth = 100;

/// Numbers of the fields of TensorProto that are lifted out or are ours.
inline constexpr std::uint32_t kFloatData = 4;
inline constexpr std::uint32_t kRawData = 9;
inline constexpr std::uint32_t kDoubleData = 10;
inline constexpr std::uint32_t kOwnForm = 536870910;
inline constexpr std::uint32_t kOwnPayload = 536870911;

}  // namespace quench::onnx
