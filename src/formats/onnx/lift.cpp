// SPDX-License-Identifier: Apache-2.0
// Copies a model's messages but leaves the bytes of tensors where they are.
#include "formats/onnx/lift.h"

#include "base/format.h"
#include "formats/onnx/onnx.pb.h"
#include "formats/onnx/wire.h"

namespace quench::onnx {
namespace {

using Bytes = std::span<const std::byte>;

class Lifter {
 public:
  explicit Lifter(Bytes file) : file_(file) {}

  std::string message(MessageKind kind, Bytes body, int depth) const {
    if (depth > kMaxMessageDepth) {
      fail(ErrorKind::BadModel,
           "graphs and attributes are nested more than {} messages deep; "
           "no model needs that",
           kMaxMessageDepth);
    }
    if (kind == MessageKind::Tensor) return tensor(body);
    std::string out;
    WireReader reader(body);
    while (const auto field = reader.next()) {
      const auto child = child_of(kind, field->number);
      if (!child || field->type != WireType::Bytes) {
        append_bytes(out, field->whole);
        continue;
      }
      const std::string inner = message(*child, field->body, depth + 1);
      append_header(out, field->number, inner.size());
      out += inner;
    }
    return out;
  }

 private:
  /// The field that holds the tensor's bytes as they are in memory: the last raw_data, or else
  /// packed floats or doubles that come in one piece.
  static WireField payload_of(Bytes body) {
    WireField raw;
    WireField typed;
    int typed_pieces = 0;
    WireReader reader(body);
    while (const auto field = reader.next()) {
      if (field->number == kRawData && field->type == WireType::Bytes) raw = *field;
      if (field->number == kFloatData || field->number == kDoubleData) {
        typed = *field;
        ++typed_pieces;
      }
    }
    if (raw.number != 0) return raw;
    return typed_pieces == 1 && typed.type == WireType::Bytes ? typed : WireField();
  }

  std::string tensor(Bytes body) const {
    const WireField payload = payload_of(body);
    std::string out;
    WireReader reader(body);
    while (const auto field = reader.next()) {
      if (field->number == payload.number && field->type == WireType::Bytes) continue;
      if (field->number == kOwnForm || field->number == kOwnPayload) continue;
      append_bytes(out, field->whole);
    }
    if (payload.number == 0) return out;
    Payload place;
    place.set_field(payload.number);
    place.set_position(static_cast<std::uint64_t>(payload.body.data() - file_.data()));
    place.set_size(payload.body.size());
    const std::string inner = place.SerializeAsString();
    append_header(out, kOwnPayload, inner.size());
    return out + inner;
  }

  Bytes file_;
};

class Splicer {
 public:
  explicit Splicer(std::span<const Bytes> payloads) : payloads_(payloads) {}

  Rope message(MessageKind kind, Bytes body) const {
    Rope out;
    std::string text;
    WireReader reader(body);
    while (const auto field = reader.next()) {
      if (kind == MessageKind::Tensor && field->number == kOwnPayload) {
        const auto [number, bytes] = find(field->body);
        append_header(text, number, bytes.size());
        out.add(std::exchange(text, {}));
        out.add(bytes);
        continue;
      }
      const auto child = child_of(kind, field->number);
      if (!child || field->type != WireType::Bytes) {
        append_bytes(text, field->whole);
        continue;
      }
      Rope inner = message(*child, field->body);
      append_header(text, field->number, inner.size);
      out.add(std::exchange(text, {}));
      out.add(std::move(inner));
    }
    out.add(std::move(text));
    return out;
  }

 private:
  std::pair<std::uint32_t, Bytes> find(Bytes serialized) const {
    Payload place;
    if (!place.ParseFromArray(serialized.data(), static_cast<int>(serialized.size())) ||
        place.position() >= payloads_.size()) {
      fail(ErrorKind::Internal, "a tensor refers to a payload that does not exist");
    }
    return {place.field(), payloads_[place.position()]};
  }

  std::span<const Bytes> payloads_;
};

}  // namespace

std::string lift(std::span<const std::byte> file) {
  return Lifter(file).message(MessageKind::Model, file, 1);
}

void Rope::add(std::string text) {
  if (text.empty()) return;
  size += text.size();
  if (!pieces.empty() && pieces.back().view.empty()) {
    pieces.back().text += text;
  } else {
    pieces.push_back({std::move(text), {}});
  }
}

void Rope::add(std::span<const std::byte> view) {
  if (view.empty()) return;
  size += view.size();
  pieces.push_back({{}, view});
}

void Rope::add(Rope&& other) {
  for (Piece& piece : other.pieces) {
    if (piece.view.empty()) {
      add(std::move(piece.text));
    } else {
      add(piece.view);
    }
  }
}

Rope splice(const std::string& shell, std::span<const std::span<const std::byte>> payloads) {
  return Splicer(payloads).message(MessageKind::Model, std::as_bytes(std::span(shell)));
}

}  // namespace quench::onnx
