// SPDX-License-Identifier: Apache-2.0
// Attribute access, and graphs held inside attributes.
#include "quench/node.h"

#include <algorithm>

#include "quench/graph.h"

namespace quench {

GraphBox::GraphBox(Graph graph) : graph_(std::make_unique<Graph>(std::move(graph))) {}
GraphBox::GraphBox(const GraphBox& other) : graph_(std::make_unique<Graph>(*other.graph_)) {}
GraphBox::GraphBox(GraphBox&&) noexcept = default;
GraphBox& GraphBox::operator=(const GraphBox& other) {
  if (this != &other) graph_ = std::make_unique<Graph>(*other.graph_);
  return *this;
}
GraphBox& GraphBox::operator=(GraphBox&&) noexcept = default;
GraphBox::~GraphBox() = default;

const Attribute* Node::find(std::string_view attribute) const noexcept {
  const auto found = std::ranges::find(attributes, attribute, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::int64_t Node::get_int(std::string_view attribute, std::int64_t otherwise) const noexcept {
  const auto* value = get<std::int64_t>(attribute);
  return value == nullptr ? otherwise : *value;
}

float Node::get_float(std::string_view attribute, float otherwise) const noexcept {
  const auto* value = get<float>(attribute);
  return value == nullptr ? otherwise : *value;
}

std::string Node::get_string(std::string_view attribute, std::string_view otherwise) const {
  const auto* value = get<std::string>(attribute);
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<std::int64_t> Node::get_ints(std::string_view attribute) const {
  const auto* value = get<std::vector<std::int64_t>>(attribute);
  return value == nullptr ? std::vector<std::int64_t>() : *value;
}

void Node::set(std::string_view attribute, Attribute::Data data) {
  const auto found = std::ranges::find(attributes, attribute, &Attribute::name);
  if (found != attributes.end()) {
    found->data = std::move(data);
    found->reference.clear();
    found->foreign.clear();
    return;
  }
  Attribute added;
  added.name = attribute;
  added.data = std::move(data);
  attributes.push_back(std::move(added));
}

void Node::erase(std::string_view attribute) {
  std::erase_if(attributes, [&](const Attribute& each) { return each.name == attribute; });
}

ValueId Node::input(std::size_t index) const noexcept {
  return index < inputs.size() ? inputs[index] : kNoValue;
}

}  // namespace quench
