// SPDX-License-Identifier: Apache-2.0
// What the attributes of a recurrent operator say.
#include <algorithm>
#include <cctype>

#include "exec/engine/kernels/rnn.h"

namespace quench::exec {
namespace {

/// A function by its name in lower case; `alpha` and `beta` are nothing where the model gives none.
std::optional<Activation> activation(const std::string& name, std::optional<float> alpha,
                                     std::optional<float> beta) {
  const float a = alpha.value_or(name == "leakyrelu" ? 0.01F : name == "hardsigmoid" ? 0.2F : 1.0F);
  const float b = beta.value_or(name == "hardsigmoid" ? 0.5F : name == "scaledtanh" ? 1.0F : 0.0F);
  using T = at::Tensor;
  if (name == "sigmoid") return [](const T& x) { return at::sigmoid(x); };
  if (name == "tanh") return [](const T& x) { return at::tanh(x); };
  if (name == "relu") return [](const T& x) { return at::relu(x); };
  if (name == "softsign") return [](const T& x) { return x / (at::abs(x) + 1); };
  if (name == "softplus") return [](const T& x) { return at::softplus(x); };
  if (name == "affine") return [=](const T& x) { return x * a + b; };
  if (name == "leakyrelu") return [=](const T& x) { return at::leaky_relu(x, a); };
  if (name == "thresholdedrelu") return [=](const T& x) { return at::threshold(x, a, 0); };
  if (name == "scaledtanh") return [=](const T& x) { return at::tanh(x * b) * a; };
  if (name == "hardsigmoid") return [=](const T& x) { return at::clamp(x * a + b, 0, 1); };
  if (name == "elu") return [=](const T& x) { return at::elu(x, a); };
  return std::nullopt;
}

std::vector<std::string> default_names(RnnKind kind) {
  if (kind == RnnKind::Rnn) return {"Tanh"};
  if (kind == RnnKind::Gru) return {"Sigmoid", "Tanh"};
  return {"Sigmoid", "Tanh", "Tanh"};
}

std::vector<std::string> activation_names(const Node& node, RnnKind kind, std::size_t directions) {
  if (const auto* given = node.get<std::vector<std::string>>("activations")) return *given;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < directions; ++i) {
    const std::vector<std::string> defaults = default_names(kind);
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  return names;
}

std::optional<float> nth(const Node& node, const char* attribute, std::size_t i) {
  const auto* values = node.get<std::vector<float>>(attribute);
  return values != nullptr && i < values->size() ? std::optional((*values)[i]) : std::nullopt;
}

}  // namespace

std::optional<RnnNode> rnn_attributes(const OpContext& context, RnnKind kind,
                                      std::string& refusal) {
  const Node& node = context.node;
  RnnNode result{.kind = kind,
                 .direction = node.get_string("direction", "forward"),
                 .clip = node.get_float("clip", 0.0F),
                 .linear_before_reset = node.get_int("linear_before_reset", 0) != 0,
                 .input_forget = node.get_int("input_forget", 0) != 0,
                 .batch_first = node.get_int("layout", 0) != 0};
  const bool two = result.direction == "bidirectional";
  if (!two && result.direction != "forward" && result.direction != "reverse") {
    refusal = format("direction '{}' is not known", result.direction);
    return std::nullopt;
  }
  const std::size_t wanted = result.functions() * (two ? 2 : 1);
  const std::vector<std::string> names = activation_names(node, kind, two ? 2 : 1);
  if (names.size() != wanted) {
    refusal = format("{} activations are needed, {} are given", wanted, names.size());
    return std::nullopt;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string lower = names[i];
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto found =
        activation(lower, nth(node, "activation_alpha", i), nth(node, "activation_beta", i));
    if (!found) {
      refusal = format("activation '{}' is not known", names[i]);
      return std::nullopt;
    }
    result.activations.push_back(*found);
  }
  return result;
}

}  // namespace quench::exec
