// SPDX-License-Identifier: Apache-2.0
// A layer while it is read: its bottoms with their shapes, its weights, the nodes it becomes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/caffe/net.h"
#include "formats/graph_maker.h"

namespace quench::caffe {

/// A blob between layers. Caffe's shapes are always known.
struct Top {
  ValueId value = kNoValue;
  Shape shape;
};

/// By name; a layer that writes over its bottom replaces it.
using Tops = std::map<std::string, Top, std::less<>>;

/// What a row's `read` works with. It throws Error(BadModel) for what the files lack and
/// Error(Unsupported) for what cannot be translated; the layer is named around it.
class Layer {
 public:
  Layer(const LayerParameter& parameter, const LayerBlobs& weights, Tops& tops, GraphMaker& make);

  const LayerParameter& parameter() const noexcept { return parameter_; }
  GraphMaker& make() noexcept { return make_; }

  std::size_t num_bottoms() const noexcept {
    return static_cast<std::size_t>(parameter_.bottom_size());
  }
  std::size_t num_tops() const noexcept { return static_cast<std::size_t>(parameter_.top_size()); }
  ValueId in(std::size_t bottom = 0) const { return bottom_at(bottom).value; }
  const Shape& shape(std::size_t bottom = 0) const { return bottom_at(bottom).shape; }
  std::int64_t rank(std::size_t bottom = 0) const { return std::ssize(shape(bottom)); }
  std::int64_t dim(std::size_t axis, std::size_t bottom = 0) const;
  /// A dimension counted from the front; `rank` itself only where `end` is allowed.
  std::int64_t axis(std::int64_t given) const;
  /// Throws unless a bottom has four dimensions.
  void expect_image(std::size_t bottom = 0) const;

  std::size_t num_blobs() const;
  /// A blob of weights with so many numbers, in this shape.
  Tensor blob(std::size_t index, const Shape& shape) const;
  /// Its numbers, whatever its shape.
  std::vector<float> numbers(std::size_t index) const;

  void set(ValueId value, Shape shape, std::size_t top = 0);
  /// A graph input under the top's name.
  void set_input(const Shape& shape, std::size_t top);

 private:
  const Top& bottom_at(std::size_t bottom) const;
  const std::vector<Tensor>& blobs() const;

  const LayerParameter& parameter_;
  const LayerBlobs& weights_;
  Tops& tops_;
  GraphMaker& make_;
};

/// The number of elements; throws where there are more than any network has.
std::int64_t count_of(const Shape& shape);
/// The shape that a Reshape takes: the first dimension stays that of the input where it is the
/// same, so that another batch still fits.
Ints reshape_target(const Shape& from, const Shape& to);

}  // namespace quench::caffe
