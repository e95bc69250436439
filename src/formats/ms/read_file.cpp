// SPDX-License-Identifier: Apache-2.0
// From the tables of a .ms file to a graph that can be shown. FlatBuffers' verifier bounds every
// table, vector and string before we look at one.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "formats/foreign.h"
#include "formats/mindir/entry.h"
#include "formats/ms/file.h"
#include "formats/ms/schema_generated.h"

namespace quench::ms {
namespace {

constexpr std::size_t kMaxRank = 16;

template <typename T>
std::size_t size_of(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

std::string text_of(const flatbuffers::String* from) { return from == nullptr ? "" : from->str(); }

const schema::MetaGraph& verified(std::span<const std::byte> file) {
  if (!is_ms(file)) fail(ErrorKind::BadModel, "the file has not the identifier MSL2");
  constexpr flatbuffers::uoffset_t kDepth = 64, kTables = 4'000'000;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  flatbuffers::Verifier verifier(bytes, file.size(), kDepth, kTables);
  if (!schema::VerifyMetaGraphBuffer(verifier)) {
    fail(ErrorKind::BadModel,
         "the file is damaged: a table or vector lies outside it; get it again");
  }
  return *schema::GetMetaGraph(bytes);
}

Shape shape_of(const schema::Tensor& from) {
  Shape shape;
  for (std::size_t i = 0; i < size_of(from.dims()); ++i) {
    shape.push_back(std::max(from.dims()->Get(static_cast<unsigned>(i)), -1));
  }
  if (shape.size() > kMaxRank) {
    fail(ErrorKind::BadModel, "tensor '{}' has {} dimensions", text_of(from.name()), shape.size());
  }
  return shape;
}

/// The stored bytes as what they are, or plain bytes where they are packed.
Tensor stored(const schema::Tensor& from, DType dtype, const Shape& shape,
              const std::shared_ptr<const void>& owner) {
  const std::span bytes(reinterpret_cast<const std::byte*>(from.data()->data()),
                        from.data()->size());
  const auto count = num_elements(shape);
  const auto wanted = count ? num_bytes(dtype, *count) : std::nullopt;
  const bool plain = from.compression() == 0 && !from.huffman() && wanted == bytes.size() &&
                     dtype != DType::String && dtype != DType::Undefined;
  if (plain) {
    // The file may place numbers anywhere.
    Tensor copy = Tensor::zeros(dtype, shape);
    std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
    return copy;
  }
  return Tensor::view(DType::UInt8, {std::ssize(bytes)}, bytes, owner);
}

std::string_view compression_name(int number) {
  switch (number) {
    case 1:
      return ", stored by indices";
    case 2:
      return ", stored sparsely";
    case 3:
    case 5:
    case 6:
      return ", entropy-coded";
    case 4:
      return ", bits packed";
    default:
      return "";
  }
}

/// "8 bits, 16 scales from 0.001 to 0.02, zero points 0 to 3".
std::string scales_of(const schema::Tensor& from) {
  const std::size_t count = size_of(from.quant_params());
  if (count == 0) return {};
  double least = INFINITY, most = -INFINITY;
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  for (std::size_t i = 0; i < count; ++i) {
    const schema::QuantParam& each = *from.quant_params()->Get(static_cast<unsigned>(i));
    least = std::min(least, each.scale());
    most = std::max(most, each.scale());
    low = std::min<std::int64_t>(low, each.zero_point());
    high = std::max<std::int64_t>(high, each.zero_point());
  }
  const int bits = from.quant_params()->Get(0)->num_bits();
  const std::string zeros =
      low == high ? format("zero point {}", low) : format("zero points {} to {}", low, high);
  const std::string scales = count == 1
                                 ? format("scale {:.6g}", least)
                                 : format("{} scales from {:.6g} to {:.6g}", count, least, most);
  return format("{} bits, {}, {}{}", bits, scales, zeros, compression_name(from.compression()));
}

void add_tensors(const schema::MetaGraph& from, Graph& graph,
                 const std::shared_ptr<const void>& owner) {
  for (std::size_t i = 0; i < size_of(from.tensors()); ++i) {
    const schema::Tensor& tensor = *from.tensors()->Get(static_cast<unsigned>(i));
    const DType dtype = mindir::dtype_of_argument(tensor.data_type());
    const Shape shape = shape_of(tensor);
    std::vector<Dim> dims;
    for (const std::int64_t size : shape) dims.push_back({.value = size, .symbol = {}});
    const std::string name = text_of(tensor.name());
    const ValueId id = graph.add_fresh(name.empty() ? format("tensor_{}", i) : name,
                                       ValueType::tensor(dtype, dims));
    if (size_of(tensor.data()) > 0) graph[id].constant = stored(tensor, dtype, shape, owner);
    const std::string scales = scales_of(tensor);
    if (!scales.empty()) graph[id].foreign = make_foreign("ms", scales);
  }
}

std::vector<ValueId> values_of(const flatbuffers::Vector<std::uint32_t>* from, const Graph& graph,
                               std::string_view what) {
  std::vector<ValueId> result;
  for (std::size_t i = 0; i < size_of(from); ++i) {
    const std::uint32_t index = from->Get(static_cast<unsigned>(i));
    if (index >= graph.values().size()) {
      fail(ErrorKind::BadModel, "{} names tensor {}, but there are {}", what, index,
           graph.values().size());
    }
    result.push_back(static_cast<ValueId>(index));
  }
  return result;
}

void add_nodes(const schema::MetaGraph& from, Graph& graph) {
  for (std::size_t i = 0; i < size_of(from.nodes()); ++i) {
    const schema::Node& given = *from.nodes()->Get(static_cast<unsigned>(i));
    Node node;
    node.name = text_of(given.name());
    node.domain = kDomain;
    const int number = given.primitive() == nullptr ? 0 : given.primitive()->number();
    node.op_type = operator_name(number);
    const std::string what = format("node '{}' ({})", node.name, node.op_type);
    node.inputs = values_of(given.inputs(), graph, what);
    node.outputs = values_of(given.outputs(), graph, what);
    graph.nodes.push_back(std::move(node));
  }
}

}  // namespace

bool is_ms(std::span<const std::byte> file) noexcept {
  constexpr std::size_t kAt = 4;
  return file.size() > kAt + 4 && std::memcmp(file.data() + kAt, "MSL", 3) == 0 &&
         (file[kAt + 3] == std::byte{'1'} || file[kAt + 3] == std::byte{'2'});
}

Model read_bytes(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  const schema::MetaGraph& from = verified(file);
  Model model;
  model.producer_name = text_of(from.version());
  if (model.producer_name.empty()) model.producer_name = "MindSpore Lite";
  model.opsets[std::string(kDomain)] = 1;
  model.graph.name = text_of(from.name());
  add_tensors(from, model.graph, owner);
  add_nodes(from, model.graph);
  model.graph.inputs = values_of(from.inputs(), model.graph, "the list of inputs");
  model.graph.outputs = values_of(from.outputs(), model.graph, "the list of outputs");
  return model;
}

}  // namespace quench::ms
