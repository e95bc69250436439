// SPDX-License-Identifier: Apache-2.0
// Bottoms, weights and tops of a layer.
#include "formats/caffe/layer.h"

#include "base/format.h"

namespace quench::caffe {

Layer::Layer(const LayerParameter& parameter, const LayerBlobs& weights, Tops& tops,
             GraphMaker& make)
    : parameter_(parameter), weights_(weights), tops_(tops), make_(make) {
  make.name_after(parameter.type(), parameter.name());
}

const Top& Layer::bottom_at(std::size_t bottom) const {
  if (bottom >= num_bottoms()) {
    fail(ErrorKind::BadModel, "it has {} bottoms, expected more", num_bottoms());
  }
  const auto found = tops_.find(parameter_.bottom(static_cast<int>(bottom)));
  if (found == tops_.end()) {
    fail(ErrorKind::BadModel, "no layer before it makes its bottom '{}'",
         parameter_.bottom(static_cast<int>(bottom)));
  }
  return found->second;
}

std::int64_t Layer::dim(std::size_t axis, std::size_t bottom) const {
  const Shape& of = shape(bottom);
  if (axis >= of.size()) {
    fail(ErrorKind::BadModel, "its bottom of shape {} has no dimension {}", to_string(of), axis);
  }
  return of[axis];
}

std::int64_t Layer::axis(std::int64_t given) const {
  const std::int64_t result = given < 0 ? given + rank() : given;
  if (result < 0 || result >= rank()) {
    fail(ErrorKind::BadModel, "it names dimension {} of {}", given, rank());
  }
  return result;
}

void Layer::expect_image(std::size_t bottom) const {
  if (rank(bottom) == 4) return;
  fail(ErrorKind::BadModel, "its bottom has the shape {}, expected batch, channels, height, width",
       to_string(shape(bottom)));
}

const std::vector<Tensor>& Layer::blobs() const {
  static const std::vector<Tensor> none;
  const auto found = weights_.find(parameter_.name());
  return found == weights_.end() ? none : found->second;
}

std::size_t Layer::num_blobs() const { return blobs().size(); }

Tensor Layer::blob(std::size_t index, const Shape& shape) const {
  const auto& all = blobs();
  if (index >= all.size()) {
    fail(ErrorKind::BadModel,
         "the file of weights has {} blobs for it, expected at least {}; is it the one of another "
         "network?",
         all.size(), index + 1);
  }
  if (all[index].size() != count_of(shape)) {
    fail(ErrorKind::BadModel,
         "blob {} of the file of weights has the shape {}, expected {}; is it the one of another "
         "network?",
         index, to_string(all[index].shape()), to_string(shape));
  }
  return all[index].reshaped(shape);
}

std::vector<float> Layer::numbers(std::size_t index) const {
  const auto& all = blobs();
  const Tensor flat = blob(index, index < all.size() ? all[index].shape() : Shape{1});
  const auto data = flat.data<float>();
  return {data.begin(), data.end()};
}

void Layer::set(ValueId value, Shape shape, std::size_t top) {
  if (top >= num_tops()) return;
  (void)count_of(shape);
  tops_.insert_or_assign(parameter_.top(static_cast<int>(top)),
                         Top{.value = value, .shape = std::move(shape)});
}

void Layer::set_input(const Shape& shape, std::size_t top) {
  const std::string& name = parameter_.top(static_cast<int>(top));
  (void)count_of(shape);
  std::vector<Dim> dims;
  for (const std::int64_t size : shape) dims.push_back({.value = size, .symbol = {}});
  const ValueId id = make_.graph().add_fresh(name, ValueType::tensor(DType::Float32, dims));
  make_.graph().inputs.push_back(id);
  set(id, shape, top);
}

std::int64_t count_of(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || dim > kMost || count > kMost) {
      fail(ErrorKind::BadModel, "it makes a blob of shape {}", to_string(shape));
    }
    count *= dim;
  }
  if (count > kMost) fail(ErrorKind::BadModel, "it makes a blob of shape {}", to_string(shape));
  return count;
}

Ints reshape_target(const Shape& from, const Shape& to) {
  Ints target = to;
  if (!from.empty() && !to.empty() && from[0] == to[0] && to[0] != 0) target[0] = 0;
  return target;
}

}  // namespace quench::caffe
