// SPDX-License-Identifier: Apache-2.0
// Scales that a program only notes.
#include "formats/paddle/observed_scales.h"

#include <algorithm>

#include "formats/paddle/framework.pb.h"

namespace quench::paddle {
namespace {

constexpr const char* kThreshold = "out_threshold";

const OpDesc::Attr* find_attr(const OpDesc& op, std::string_view name) {
  const auto found = std::ranges::find_if(
      op.attrs(), [&](const OpDesc::Attr& attr) { return attr.name() == name; });
  return found == op.attrs().end() ? nullptr : &*found;
}

std::string argument(const OpDesc& op, std::string_view name) {
  for (const OpDesc::Var& var : op.inputs()) {
    if (var.parameter() == name && var.arguments_size() == 1) return var.arguments(0);
  }
  return {};
}

/// What is observed, and how far it reaches.
std::map<std::string, float> observed(const BlockDesc& block,
                                      const std::map<std::string, Tensor>& parameters) {
  std::map<std::string, float> scales;
  for (const OpDesc& op : block.ops()) {
    const OpDesc::Attr* only = find_attr(op, "only_observer");
    if (op.type() != "quantize_linear" || only == nullptr || !only->b()) continue;
    const auto scale = parameters.find(argument(op, "Scale"));
    if (scale == parameters.end() || scale->second.size() != 1) continue;
    scales.emplace(argument(op, "X"), to_float(scale->second)[0]);
  }
  return scales;
}

void note(OpDesc& op, const std::map<std::string, float>& scales) {
  if (op.type() == "quantize_linear" || op.type() == "dequantize_linear") return;
  if (find_attr(op, kThreshold) != nullptr) return;
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      const auto scale = scales.find(name);
      if (scale == scales.end()) continue;
      OpDesc::Attr& attr = *op.add_attrs();
      attr.set_name(kThreshold);
      attr.set_type(FLOAT);
      attr.set_f(scale->second);
      return;
    }
  }
}

}  // namespace

std::string with_thresholds(std::span<const std::byte> file,
                            const std::map<std::string, Tensor>& parameters) {
  std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  ProgramDesc program;
  if (!program.ParseFromString(text) || program.blocks_size() == 0) return text;
  BlockDesc& block = *program.mutable_blocks(0);
  const std::map<std::string, float> scales = observed(block, parameters);
  if (scales.empty()) return text;
  for (OpDesc& op : *block.mutable_ops()) note(op, scales);
  return program.SerializeAsString();
}

}  // namespace quench::paddle
