// SPDX-License-Identifier: Apache-2.0
// The text of a network, by protobuf's text format, and its file of weights.
#include "formats/caffe/net.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>

#include "base/format.h"

namespace quench::caffe {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxText = 64U << 20U;

/// Keeps the first error, and every field that a layer's parameters have and we do not know.
class Collector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (error.empty()) error = format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int line, int /*column*/, const std::string& message) override {
    constexpr std::string_view kParameters = "Parameter\"";
    const bool layer = message.find(".LayerParameter\"") != std::string::npos ||
                       message.find(".OldLayerParameter\"") != std::string::npos ||
                       message.find(".NetParameter\"") != std::string::npos;
    if (layer || message.find(kParameters) == std::string::npos || !unknown.empty()) return;
    unknown = format("line {}: {}", line + 1, message);
  }
  std::string error, unknown;
};

/// Braces inside braces, before a parser follows them.
void expect_shallow(std::span<const std::byte> text) {
  int depth = 0;
  for (const std::byte each : text) {
    const char letter = static_cast<char>(each);
    if (letter == '{' || letter == '<') ++depth;
    if (letter == '}' || letter == '>') --depth;
    if (depth > kMaxDepth) {
      fail(ErrorKind::BadModel, "its messages lie more than {} deep, which no network's do",
           kMaxDepth);
    }
  }
}

NetParameter parse(std::span<const std::byte> text) {
  if (text.size() > kMaxText) {
    fail(ErrorKind::BadModel, "the text of a network has {} bytes, more than {}", text.size(),
         kMaxText);
  }
  expect_shallow(text);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  google::protobuf::TextFormat::Parser parser;
  Collector collector;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxDepth);
  NetParameter net;
  if (!parser.Parse(&stream, &net)) {
    fail(ErrorKind::BadModel, "the text of the network cannot be read: {}", collector.error);
  }
  if (!collector.unknown.empty()) {
    fail(ErrorKind::Unsupported, "a layer has a parameter that is not known: {}",
         collector.unknown);
  }
  return net;
}

template <typename Rules>
bool any_meets(const Rules& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const StateRule& rule) {
    const bool phase = !rule.has_phase() || rule.phase() == TEST;
    return phase && rule.stage().empty() && rule.min_level() <= 0 &&
           (!rule.has_max_level() || rule.max_level() >= 0);
  });
}

/// As Caffe decides for a network in use: phase TEST, level 0, no stages.
template <typename Layer>
bool runs(const Layer& layer) {
  if (layer.include_size() > 0) return any_meets(layer.include());
  return !any_meets(layer.exclude());
}

/// "INNER_PRODUCT" is InnerProduct, but abbreviations keep their letters.
std::string new_type(OldType type) {
  static const std::map<OldType, std::string> others = {
      {ABSVAL, "AbsVal"}, {ARGMAX, "ArgMax"}, {BNLL, "BNLL"},
      {LRN, "LRN"},       {MVN, "MVN"},       {RELU, "ReLU"},
      {TANH, "TanH"},     {IM2COL, "Im2col"}, {SOFTMAX_LOSS, "SoftmaxWithLoss"}};
  const auto found = others.find(type);
  if (found != others.end()) return found->second;
  std::string name;
  bool upper = true;
  for (const char letter : OldType_Name(type)) {
    if (letter == '_') {
      upper = true;
    } else {
      name += upper ? letter : static_cast<char>(letter - 'A' + 'a');
      upper = false;
    }
  }
  return name;
}

/// Fields of both messages have the same names.
LayerParameter renewed(const OldLayerParameter& old) {
  LayerParameter layer;
  const auto* to_reflection = layer.GetReflection();
  const auto* from_reflection = old.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  from_reflection->ListFields(old, &fields);
  for (const auto* field : fields) {
    const auto* same = layer.GetDescriptor()->FindFieldByName(field->name());
    const bool message = field->message_type() != nullptr && !field->is_repeated();
    if (same == nullptr || !message) continue;
    to_reflection->MutableMessage(&layer, same)->CopyFrom(from_reflection->GetMessage(old, field));
  }
  layer.set_name(old.name());
  layer.set_type(new_type(old.type()));
  *layer.mutable_bottom() = old.bottom();
  *layer.mutable_top() = old.top();
  return layer;
}

std::vector<NetInput> head_inputs(const NetParameter& net) {
  std::vector<NetInput> inputs;
  for (int i = 0; i < net.input_size(); ++i) {
    NetInput input{.name = net.input(i), .shape = {}};
    if (i < net.input_shape_size()) {
      input.shape.assign(net.input_shape(i).dim().begin(), net.input_shape(i).dim().end());
    } else if (net.input_dim_size() >= 4 * (i + 1)) {
      for (int d = 0; d < 4; ++d) input.shape.push_back(net.input_dim(4 * i + d));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Tensor tensor_of(const Blob& blob) {
  Shape shape;
  if (blob.has_shape()) {
    shape.assign(blob.shape().dim().begin(), blob.shape().dim().end());
  } else {
    shape = {blob.num(), blob.channels(), blob.height(), blob.width()};
  }
  const bool doubles = blob.double_data_size() > 0;
  const int count = doubles ? blob.double_data_size() : blob.data_size();
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && product > std::numeric_limits<std::int32_t>::max() / dim)) {
      fail(ErrorKind::BadModel, "a blob has the shape {}", to_string(shape));
    }
    product *= dim;
  }
  if (product != count) {
    fail(ErrorKind::BadModel, "a blob of shape {} has {} numbers", to_string(shape), count);
  }
  Tensor result = Tensor::zeros(DType::Float32, shape);
  const auto to = result.mutable_data<float>();
  for (int i = 0; i < count; ++i) {
    to[static_cast<std::size_t>(i)] =
        doubles ? static_cast<float>(blob.double_data(i)) : blob.data(i);
  }
  return result;
}

template <typename Layers>
void add_blobs(LayerBlobs& to, const Layers& layers) {
  for (const auto& layer : layers) {
    if (layer.blobs().empty()) continue;
    std::vector<Tensor> blobs;
    try {
      for (const Blob& blob : layer.blobs()) blobs.push_back(tensor_of(blob));
    } catch (Error& error) {
      throw error.in(format("layer '{}'", layer.name()));
    }
    to[layer.name()] = std::move(blobs);
  }
}

}  // namespace

Net read_net(std::span<const std::byte> text) {
  const NetParameter given = parse(text);
  Net net{.name = given.name(), .inputs = head_inputs(given), .layers = {}};
  for (const OldLayerParameter& layer : given.layers()) {
    if (runs(layer)) net.layers.push_back(renewed(layer));
  }
  for (const LayerParameter& layer : given.layer()) {
    if (runs(layer)) net.layers.push_back(layer);
  }
  if (net.layers.empty()) fail(ErrorKind::BadModel, "the network has no layers");
  return net;
}

LayerBlobs read_weights(std::span<const std::byte> file) {
  Weights weights;
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !weights.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    fail(ErrorKind::BadModel, "the file is no sound .caffemodel, or was cut short; get it again");
  }
  LayerBlobs blobs;
  add_blobs(blobs, weights.layers());
  add_blobs(blobs, weights.layer());
  return blobs;
}

bool is_prototxt(std::span<const std::byte> file) noexcept {
  std::string_view text(reinterpret_cast<const char*>(file.data()),
                        std::min<std::size_t>(file.size(), 4096));
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (start == std::string_view::npos) return false;
    text.remove_prefix(start);
    if (text[0] != '#') break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  for (const std::string_view word : {"name", "layer", "layers", "input", "input_dim",
                                      "input_shape", "force_backward", "state"}) {
    if (!text.starts_with(word)) continue;
    const std::size_t next = text.find_first_not_of(" \t\r\n", word.size());
    if (next != std::string_view::npos && (text[next] == ':' || text[next] == '{')) return true;
  }
  return false;
}

namespace {

/// A protobuf number at the front of the bytes; false where there is none.
bool take_number(std::span<const std::byte>& bytes, std::uint64_t& number) noexcept {
  number = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<std::uint64_t>(bytes[i]);
    number |= (byte & 0x7fU) << (7 * i);
    if ((byte & 0x80U) != 0) continue;
    bytes = bytes.subspan(i + 1);
    return true;
  }
  return false;
}

}  // namespace

/// A name, then layers: field 100, or 2 in old files. A TensorFlow graph opens with many nodes.
bool is_caffemodel(std::span<const std::byte> file) noexcept {
  constexpr std::uint64_t kMessage = 2;
  constexpr std::uint64_t kLayer = 100, kOldLayer = 2, kName = 1;
  std::uint64_t last = 0;
  for (int i = 0; i < 64; ++i) {
    std::uint64_t tag = 0, size = 0;
    if (!take_number(file, tag)) return false;
    const std::uint64_t field = tag >> 3U;
    if (field == 0 || field > kLayer || (field == kName && last == kName)) return false;
    if ((tag & 7U) == 0) {
      if (!take_number(file, size)) return false;
    } else if ((tag & 7U) == kMessage) {
      if (!take_number(file, size) || size > file.size()) return false;
      if (field == kLayer || field == kOldLayer) {
        // The layer opens with its name, or, of old, with another layer or its inputs.
        const auto first = size == 0 ? 0U : static_cast<unsigned>(file[0]);
        return field == kLayer ? first == 0x0a : first == 0x0a || first == 0x12 || first == 0x1a;
      }
      file = file.subspan(size);
    } else {
      return false;
    }
    last = field;
  }
  return false;
}

}  // namespace quench::caffe
