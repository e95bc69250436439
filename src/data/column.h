// SPDX-License-Identifier: Apache-2.0
// The samples of one model input, and what that input wants.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/graph.h"
#include "quench/tensor.h"

namespace quench::data {

/// What 8-bit integers stand for: (integer - zero) * value.
struct InputScale {
  float value = 1;
  float zero = 0;
};

/// What a model input wants of each sample.
struct InputSpec {
  std::string name;
  DType dtype = DType::Undefined;        ///< Undefined: whatever the data has
  std::optional<std::vector<Dim>> dims;  ///< nothing: the model leaves the rank open
  bool batched = true;                   ///< the first dimension counts samples
  std::optional<InputScale> scale;       ///< of integers that a model dequantises
  bool raw = false;                      ///< images come as 0 to 255, without mean and std

  /// The dimensions of one sample, without the one that counts samples.
  std::vector<Dim> sample_dims() const;
  /// "input 'x' float32[N,3,32,32]", for messages.
  std::string describe() const;
};

/// Specs of all inputs. They are batched only if their first dimensions can be the same number.
std::vector<InputSpec> describe_inputs(const std::vector<Value>& inputs);

/// Numbers in the input's type: rounded to its scale where it has one and they are none of its own
/// integers.
Tensor in_type_of(const InputSpec& spec, const Tensor& numbers);

/// Whether `shape` is possible where the model has `dims`.
bool fits(const Shape& shape, const std::vector<Dim>& dims);

/// The samples of one input. Reading is safe from several threads.
class Column {
 public:
  virtual ~Column() = default;
  virtual std::int64_t size() const = 0;
  /// Sample `index` in the input's type; batched inputs get a first dimension of 1.
  virtual Tensor read(std::int64_t index) const = 0;
  /// The file, or file#index.
  virtual std::string name(std::int64_t index) const = 0;
  /// The file of sample `index`, where each sample is an image file of its own.
  virtual std::string image_file(std::int64_t /*index*/) const { return ""; }
  /// Whether these are pixels, which mean and std apply to.
  virtual bool holds_pixels() const { return false; }
  /// Labels that came with the samples, one each, or none at all.
  const std::vector<std::int64_t>& labels() const noexcept { return labels_; }

 protected:
  std::vector<std::int64_t> labels_;
};

/// Where the channels of an image input lie and how large it is.
struct ImageLayout {
  bool channels_last = false;
  bool batch_dim = true;
  int channels = 3;
  Dim height;
  Dim width;
};
/// Throws Error(BadData) when the input cannot be an image.
ImageLayout image_layout(const InputSpec& spec, ColorOrder color);

struct Image;
/// Pixels as the tensor that the input wants; throws when the size is not the input's.
Tensor image_to_tensor(const Image& image, const InputSpec& spec, const ImageLayout& layout);

}  // namespace quench::data
