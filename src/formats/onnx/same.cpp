// SPDX-License-Identifier: Apache-2.0
// Compares a model with what was read from the file it was written to.
#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "formats/onnx/file.h"

namespace quench::onnx {
namespace {

void expect(bool same, const char* what, const std::string& name) {
  if (!same) fail(ErrorKind::Internal, "the file just written differs in {} '{}'", what, name);
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::String) return a.strings() == b.strings();
  const Tensor held_a = a.held();
  const Tensor held_b = b.held();
  const auto x = held_a.bytes();
  const auto y = held_b.bytes();
  if (x.size() != y.size()) return false;
  if (x.data() == y.data()) return true;
  constexpr std::size_t kStep = std::size_t{16} << 20;
  for (std::size_t done = 0; done < x.size(); done += kStep) {
    const std::size_t size = std::min(kStep, x.size() - done);
    if (std::memcmp(x.data() + done, y.data() + done, size) != 0) return false;
    // Mapped and seen once: no reason to stay.
    release_pages(y.subspan(done, size));
    if (a.is_stored()) release_pages(x.subspan(done, size));
  }
  return true;
}

bool same_ids(const Graph& a, const std::vector<ValueId>& x, const Graph& b,
              const std::vector<ValueId>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if ((x[i] == kNoValue) != (y[i] == kNoValue)) return false;
    if (x[i] != kNoValue && a[x[i]].name != b[y[i]].name) return false;
  }
  return true;
}

void expect_same_graph(const Graph& a, const Graph& b);

void expect_same_attribute(const Attribute& a, const Attribute& b) {
  expect(a.name == b.name && a.reference == b.reference && a.data.index() == b.data.index(),
         "the attribute", a.name);
  if (const auto* tensor = std::get_if<Tensor>(&a.data)) {
    expect(same_tensor(*tensor, std::get<Tensor>(b.data)), "the attribute", a.name);
  } else if (const auto* graph = std::get_if<GraphBox>(&a.data)) {
    expect_same_graph(**graph, *std::get<GraphBox>(b.data));
  }
}

void expect_same_graph(const Graph& a, const Graph& b) {
  expect(a.nodes.size() == b.nodes.size(), "the nodes of graph", a.name);
  expect(same_ids(a, a.inputs, b, b.inputs), "the inputs of graph", a.name);
  expect(same_ids(a, a.outputs, b, b.outputs), "the outputs of graph", a.name);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Node& x = a.nodes[i];
    const Node& y = b.nodes[i];
    expect(x.op_type == y.op_type && x.domain == y.domain && same_ids(a, x.inputs, b, y.inputs) &&
               same_ids(a, x.outputs, b, y.outputs) && x.attributes.size() == y.attributes.size(),
           "the node", x.name);
    for (std::size_t k = 0; k < x.attributes.size(); ++k) {
      expect_same_attribute(x.attributes[k], y.attributes[k]);
    }
  }
  for (const Value& value : a.values()) {
    if (!value.constant) continue;
    const Tensor* other = b.constant(b.find(value.name));
    expect(other != nullptr && same_tensor(*value.constant, *other), "the constant", value.name);
  }
}

}  // namespace

void expect_same(const Model& written, const Model& read_again) {
  expect_same_graph(written.graph, read_again.graph);
  expect(written.opsets == read_again.opsets, "the operator versions of", written.graph.name);
  expect(written.functions.size() == read_again.functions.size(), "the functions of",
         written.graph.name);
  for (std::size_t i = 0; i < written.functions.size(); ++i) {
    expect_same_graph(written.functions[i].body, read_again.functions[i].body);
  }
}

}  // namespace quench::onnx
