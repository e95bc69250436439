// SPDX-License-Identifier: Apache-2.0
// ResNet-50's convolutions in our int8 run beside the bare oneDNN primitives, in turns.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>
#include <vector>

#include "quench/session.h"

namespace {

using Clock = std::chrono::steady_clock;
using dnnl::memory;

struct Shape {
  std::int64_t in, out, kernel, stride, size;  ///< size: of the input, which is square
};

/// The convolutions of ResNet-50 as torchvision builds it, in order.
std::vector<Shape> resnet50() {
  std::vector<Shape> shapes = {{3, 64, 7, 2, 224}};
  std::int64_t in = 64;
  std::int64_t size = 56;
  const std::int64_t blocks[] = {3, 4, 6, 3};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      if (block == 0) shapes.push_back({in, 4 * width, 1, stride, size});
      shapes.push_back({in, width, 1, 1, size});
      shapes.push_back({width, width, 3, stride, size});
      size /= stride;
      shapes.push_back({width, 4 * width, 1, 1, size});
      in = 4 * width;
    }
  }
  return shapes;
}

/// One primitive with memory of its own.
class Bare {
 public:
  Bare(const dnnl::engine& engine, const Shape& shape, std::int64_t batch) {
    const std::int64_t pad = shape.kernel / 2;
    const std::int64_t out = shape.size / shape.stride;
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(2,
                                 std::vector<float>(static_cast<std::size_t>(shape.out), 0.001F));
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        {{batch, shape.in, shape.size, shape.size},
         memory::data_type::u8,
         memory::format_tag::nhwc},
        {{shape.out, shape.in, shape.kernel, shape.kernel},
         memory::data_type::s8,
         memory::format_tag::any},
        {{shape.out}, memory::data_type::s32, memory::format_tag::x},
        {{batch, shape.out, out, out}, memory::data_type::u8, memory::format_tag::nhwc},
        {shape.stride, shape.stride}, {pad, pad}, {pad, pad});
    const dnnl::convolution_forward::primitive_desc pd(desc, attributes, engine);
    primitive_ = dnnl::convolution_forward(pd);
    args_ = {{DNNL_ARG_SRC, filled(pd.src_desc(), engine)},
             {DNNL_ARG_WEIGHTS, filled(pd.weights_desc(), engine)},
             {DNNL_ARG_BIAS, filled(pd.bias_desc(), engine)},
             {DNNL_ARG_DST, filled(pd.dst_desc(), engine)}};
  }

  void run(dnnl::stream& stream) {
    primitive_.execute(stream, args_);
    stream.wait();
  }

 private:
  static memory filled(const memory::desc& desc, const dnnl::engine& engine) {
    memory result(desc, engine);
    auto* bytes = static_cast<unsigned char*>(result.get_data_handle());
    for (std::size_t i = 0; i < desc.get_size(); ++i) bytes[i] = static_cast<unsigned char>(i % 7);
    return result;
  }

  dnnl::primitive primitive_;
  std::unordered_map<int, memory> args_;
};

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

quench::TensorMap noise(const quench::Value& input, std::int64_t batch) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  quench::Tensor tensor = quench::Tensor::zeros(quench::DType::Float32, {batch, 3, 224, 224});
  for (float& each : tensor.mutable_data<float>()) each = normal(random);
  return {{input.name, tensor}};
}

int measure(const std::string& path, std::int64_t batch, int threads, int rounds) {
  omp_set_num_threads(threads);
  double sum = 0;
  quench::SessionOptions options;
  options.on_step = [&](const quench::StepTime& step) {
    if (step.op_type == "QLinearConv") sum += step.ms;
  };
  quench::Session session(quench::load(path), options, quench::Context{.threads = threads});
  const quench::TensorMap feeds = noise(session.inputs().front(), batch);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<Bare> primitives;
  for (const Shape& shape : resnet50()) primitives.emplace_back(engine, shape, batch);
  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i < rounds + 2; ++i) {
    sum = 0;
    session.run(feeds);
    double alone = 0;
    for (Bare& primitive : primitives) {
      const auto start = Clock::now();
      primitive.run(stream);
      alone += milliseconds(start);
    }
    if (i < 2) continue;  // weights are packed and memory is fetched
    ours.push_back(sum);
    bare.push_back(alone);
  }
  std::printf("{\"ours_ms\": %.3f, \"bare_ms\": %.3f, \"ratio\": %.3f, \"batch\": %ld}\n",
              median(ours), median(bare), median(ours) / median(bare), static_cast<long>(batch));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s RESNET50_INT8.onnx [batch] [threads] [rounds]\n", words[0]);
    return 2;
  }
  const auto number = [&](int at, int otherwise) {
    return count > at ? std::max(1, std::atoi(words[at])) : otherwise;
  };
  try {
    return measure(words[1], number(2, 1), number(3, 2), number(4, 30));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", words[0], error.what());
    return 1;
  }
}
