// SPDX-License-Identifier: Apache-2.0
// Tensors between ONNX messages and Quench.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/source.h"
#include "quench/graph.h"
#include "quench/model.h"

namespace quench::onnx {

class TensorProto;

/// A tensor and how it lay in the file.
struct ReadTensor {
  Tensor tensor;
  ConstantForm form = ConstantForm::Raw;
};

/// A tensor over bytes of a file, which are copied where they are not aligned for their type.
Tensor tensor_over(DType dtype, Shape shape, Stored stored, const ReadOptions& options);

/// The tensor of a message, without a copy where its bytes are aligned. Nothing when its type has a
/// number Quench does not know.
std::optional<ReadTensor> read_tensor(const TensorProto& proto, Source& source);
/// Clears what `read_tensor` has read; the name stays.
void clear_data(TensorProto& proto);
/// Puts lifted bytes back into the message, for tensors that are kept as they are.
void restore_data(TensorProto& proto, const Source& source);

/// Elements from the typed fields, as they lie in memory; throws when their number is not `count`.
Tensor from_typed(const TensorProto& proto, DType dtype, Shape shape, std::int64_t count);
/// Fills the typed field of an element type, other than strings, floats and doubles.
void to_typed(const Tensor& tensor, TensorProto& proto);

/// What the writer has set aside: bytes spliced into the model, and bytes for the data file.
class Store {
 public:
  /// `location` names the data file.
  Store(SaveOptions::Data data, std::string location)
      : data_(data), location_(std::move(location)) {}
  /// Sets every tensor aside as a part, for a file that is not ONNX itself.
  static Store of_parts();

  /// Writes all but the tensor's name and what only the format understands.
  void write(const Tensor& tensor, ConstantForm form, TensorProto& proto);

  std::span<const std::span<const std::byte>> payloads() const noexcept { return payloads_; }
  std::vector<Tensor>& parts() noexcept { return parts_; }
  /// What the data file holds: ranges, in order of their offset.
  struct Block {
    std::uint64_t offset;
    Tensor tensor;
  };
  std::span<const Block> blocks() const noexcept { return blocks_; }

 private:
  bool goes_outside(const Tensor& tensor, ConstantForm form) const;
  void write_inside(const Tensor& tensor, std::uint32_t field, TensorProto& proto);
  void write_outside(const Tensor& tensor, TensorProto& proto);
  void write_part(const Tensor& tensor, ConstantForm form, TensorProto& proto);

  SaveOptions::Data data_;
  std::string location_;
  std::vector<std::span<const std::byte>> payloads_;
  std::vector<Block> blocks_;
  bool as_parts_ = false;
  std::vector<Tensor> parts_;
  std::uint64_t end_ = 0;
  /// Tensors that share bytes share them in the data file, too.
  std::map<std::pair<const void*, std::size_t>, std::uint64_t> placed_;
};

}  // namespace quench::onnx
