// SPDX-License-Identifier: Apache-2.0
// Finds convolutions that a converter wrote as several operators: padding before one that pads
// nothing itself; a dilated one whose pixels are spread over the batch, convolved without gaps, and
// put back.
#include <algorithm>

#include "formats/tflite/translate.h"

namespace quench::tflite {
namespace {

std::int64_t option(const OpItem& op, std::string_view name) {
  const auto found = std::ranges::find(op.options, name, &Option::name);
  const auto* number =
      found == op.options.end() ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? 0 : *number;
}

/// A convolution that pads nothing.
bool is_valid(const OpItem& op) {
  constexpr std::int64_t kValid = 1;
  const bool conv = op.name == "CONV_2D" || op.name == "DEPTHWISE_CONV_2D";
  return conv && option(op, "padding") == kValid;
}

/// Likewise, and steps by one.
bool is_plain(const OpItem& op) {
  return is_valid(op) && option(op, "stride_w") == 1 && option(op, "stride_h") == 1 &&
         option(op, "dilation_w") == 1 && option(op, "dilation_h") == 1;
}

Ints numbers(const Tensor* tensor) {
  Ints result;
  if (tensor == nullptr || tensor->dtype() != DType::Int32) return result;
  for (const std::int32_t each : tensor->data<std::int32_t>()) result.push_back(each);
  return result;
}

}  // namespace

const OpItem* Translator::only_reader(int index) const {
  const auto& readers = readers_[static_cast<std::size_t>(index)];
  const bool output = std::ranges::find(program_.outputs, index) != program_.outputs.end();
  if (readers.size() != 1 || output) return nullptr;
  return &program_.ops[static_cast<std::size_t>(readers.front())];
}

void Translator::find_dilation(const OpItem& spread) {
  if (spread.inputs.size() != 3 || spread.outputs.size() != 1) return;
  if (spread.inputs[0] < 0 || spread.inputs[1] < 0 || spread.inputs[2] < 0) return;
  const OpItem* conv = only_reader(spread.outputs[0]);
  if (conv == nullptr || !is_plain(*conv) || conv->outputs.size() != 1) return;
  const OpItem* back = only_reader(conv->outputs[0]);
  if (back == nullptr || back->name != "BATCH_TO_SPACE_ND" || back->inputs.size() != 3 ||
      back->inputs[1] < 0 || back->inputs[2] < 0 || conv->inputs[0] != spread.outputs[0]) {
    return;
  }
  const Ints block = numbers(constant(spread.inputs[1]));
  const Ints pads = numbers(constant(spread.inputs[2]));
  const Ints crops = numbers(constant(back->inputs[2]));
  if (block.size() != 2 || block != numbers(constant(back->inputs[1])) || pads.size() != 4 ||
      crops.size() != 4) {
    return;
  }
  Dilation found{.block = block,
                 .begin = {pads[0] - crops[0], pads[2] - crops[2]},
                 .end = {pads[1] - crops[1], pads[3] - crops[3]}};
  const auto negative = [](std::int64_t each) { return each < 0; };
  if (std::ranges::any_of(found.begin, negative) || std::ranges::any_of(found.end, negative)) {
    return;
  }
  dilations_.emplace(conv->index, std::move(found));
  folded_.emplace(spread.index, conv->index);
  folded_.emplace(back->index, conv->index);
}

void Translator::find_padding(const OpItem& pad) {
  if (pad.inputs.size() != 2 || pad.inputs[0] < 0 || pad.inputs[1] < 0) return;
  if (pad.outputs.size() != 1) return;
  const OpItem* conv = only_reader(pad.outputs[0]);
  if (conv == nullptr || !is_valid(*conv) || conv->inputs[0] != pad.outputs[0]) return;
  const TensorItem& from = tensor(pad.inputs[0]);
  const Ints pads = numbers(constant(pad.inputs[1]));
  const bool image = pads.size() == 8 && from.rank() == 4 &&
                     from.quantization == tensor(pad.outputs[0]).quantization;
  if (!image || folded_.contains(conv->index) || dilations_.contains(conv->index)) return;
  // Batch and channels stay as they are; height and width grow.
  if (pads[0] != 0 || pads[1] != 0 || pads[6] != 0 || pads[7] != 0) return;
  if (std::ranges::any_of(pads, [](std::int64_t each) { return each < 0; })) return;
  dilations_.emplace(conv->index,
                     Dilation{.block = {option(*conv, "dilation_h"), option(*conv, "dilation_w")},
                              .begin = {pads[2], pads[4]},
                              .end = {pads[3], pads[5]}});
  folded_.emplace(pad.index, conv->index);
}

void Translator::find_dilations() {
  for (const OpItem& op : program_.ops) {
    if (op.name == "SPACE_TO_BATCH_ND") find_dilation(op);
  }
  for (const OpItem& op : program_.ops) {
    if (op.name == "PAD") find_padding(op);
  }
}

const Dilation* Translator::dilation_of(int op) const {
  const auto found = dilations_.find(op);
  return found == dilations_.end() ? nullptr : &found->second;
}

}  // namespace quench::tflite
