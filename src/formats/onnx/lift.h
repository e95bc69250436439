// SPDX-License-Identifier: Apache-2.0
// Takes weights out of a serialized model before protobuf sees it, and puts them back in after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quench::onnx {

/// The serialized model without the bytes of its tensors: each tensor has a Payload that says where
/// in `file` they lie. Protobuf would copy them; what is left is small.
std::string lift(std::span<const std::byte> file);

/// A long text made of owned and of borrowed pieces.
struct Rope {
  struct Piece {
    std::string text;
    std::span<const std::byte> view;
  };
  std::vector<Piece> pieces;
  std::uint64_t size = 0;

  void add(std::string text);
  void add(std::span<const std::byte> view);
  void add(Rope&& other);
};

/// The reverse: `shell` is a serialized model whose Payloads number the entries of `payloads`.
Rope splice(const std::string& shell, std::span<const std::span<const std::byte>> payloads);

}  // namespace quench::onnx
