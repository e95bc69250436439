// SPDX-License-Identifier: Apache-2.0
// ResNet-50 as torchvision builds it (the stride in the 3x3 convolution), with random weights.
#include <cmath>

#include "generate/builder.h"

namespace quench::generate {
namespace {

struct Conv {
  std::int64_t in;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride = 1;
  /// Smaller than 1 on the last convolution of a block, or sixteen sums would add up.
  double gain = 1;
};

class ResNet {
 public:
  explicit ResNet(const Options& options)
      : build_(options, "resnet50"), keep_norm_(options.keep_norm) {}

  Model make() {
    ValueId value = build_.input("data", DType::Float32, {-1, 3, 224, 224}, {"N"});
    value = build_.apply("Relu", {conv(value, {.in = 3, .out = 64, .kernel = 7, .stride = 2})});
    Node& pool = build_.node("MaxPool", {value});
    pool.set("kernel_shape", Ints{3, 3});
    pool.set("strides", Ints{2, 2});
    pool.set("pads", Ints{1, 1, 1, 1});
    value = pool.outputs.front();
    value = stage(value, 64, 64, 3, 1);
    value = stage(value, 256, 128, 4, 2);
    value = stage(value, 512, 256, 6, 2);
    value = stage(value, 1024, 512, 3, 2);
    value = build_.apply("Flatten", {build_.apply("GlobalAveragePool", {value})});
    const double limit = std::sqrt(3.0 / 2048);
    Node& last = build_.node(
        "Gemm", {value, build_.weight({1000, 2048}, limit), build_.weight({1000}, limit)});
    last.set("transB", std::int64_t{1});
    build_.output(last.outputs.front(), "logits", {-1, 1000}, {"N"});
    return build_.take();
  }

 private:
  ValueId conv(ValueId value, const Conv& shape) {
    const auto fan_in = static_cast<double>(shape.in * shape.kernel * shape.kernel);
    const ValueId weight = build_.weight({shape.out, shape.in, shape.kernel, shape.kernel},
                                         shape.gain * std::sqrt(6 / fan_in));
    std::vector<ValueId> inputs = {value, weight};
    if (!keep_norm_) inputs.push_back(build_.weight({shape.out}, 0.05));
    Node& added = build_.node("Conv", inputs);
    const std::int64_t pad = shape.kernel / 2;
    added.set("kernel_shape", Ints{shape.kernel, shape.kernel});
    added.set("strides", Ints{shape.stride, shape.stride});
    added.set("pads", Ints{pad, pad, pad, pad});
    const ValueId result = added.outputs.front();
    return keep_norm_ ? norm(result, shape.out) : result;
  }

  ValueId norm(ValueId value, std::int64_t channels) {
    const Shape shape = {channels};
    const ValueId scale = build_.spread(shape, 0.8, 1.2);
    const ValueId bias = build_.weight(shape, 0.05);
    const ValueId mean = build_.weight(shape, 0.05);
    const ValueId variance = build_.spread(shape, 0.8, 1.2);
    return build_.apply("BatchNormalization", {value, scale, bias, mean, variance});
  }

  ValueId stage(ValueId value, std::int64_t in, std::int64_t width, int blocks,
                std::int64_t stride) {
    const std::int64_t out = 4 * width;
    for (int index = 0; index < blocks; ++index) {
      const std::int64_t from = index == 0 ? in : out;
      const std::int64_t step = index == 0 ? stride : 1;
      ValueId skip = value;
      value = build_.apply("Relu", {conv(value, {.in = from, .out = width, .kernel = 1})});
      value = build_.apply("Relu",
                           {conv(value, {.in = width, .out = width, .kernel = 3, .stride = step})});
      value = conv(value, {.in = width, .out = out, .kernel = 1, .gain = 0.3});
      if (index == 0) {
        skip = conv(skip, {.in = from, .out = out, .kernel = 1, .stride = step, .gain = 0.7});
      }
      value = build_.apply("Relu", {build_.apply("Add", {value, skip})});
    }
    return value;
  }

  Builder build_;
  bool keep_norm_;
};

}  // namespace

Model resnet50(const Options& options) { return ResNet(options).make(); }

}  // namespace quench::generate
