// SPDX-License-Identifier: Apache-2.0
// Fourier transforms.
#include "ops/context.h"

namespace quench::ops {

void infer_dft(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr || input->size() < 2) return;
  // The axis moved from an attribute to an input in opset 20.
  const auto given = context.number(2);
  if (context.has_input(2) && !given) {
    return context.set(0, context.dtype(0), unknown_dims(input->size()));
  }
  const std::int64_t axis =
      given ? *given : context.node().get_int("axis", context.opset() >= 20 ? -2 : 1);
  const SymInts* length = context.ints(1);
  Dims result = *input;
  Dim& along = result[checked_axis(axis, result.size())];
  if (context.has_input(1)) {
    along = length == nullptr || length->empty() ? Dim{} : length->front().dim();
  }
  const bool onesided = context.node().get_int("onesided", 0) != 0;
  const bool inverse = context.node().get_int("inverse", 0) != 0;
  if (onesided && inverse) {
    // Half a spectrum makes a real signal, of a length that may be even or odd.
    if (!context.has_input(1)) along = Dim{};
    result.back() = Dim{1, {}};
  } else {
    if (onesided) along = (floor_div(SymInt(along), 2) + SymInt(1)).dim();
    result.back() = Dim{2, {}};
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_stft(InferContext& context) {
  const Dims* signal = context.shape(0);
  const SymInts* step = context.ints(1);
  const SymInts* length = context.ints(3);
  const Dims* window = context.shape(2);
  Dims result = unknown_dims(4);
  result[3] = Dim{2, {}};
  if (signal != nullptr && !signal->empty()) result[0] = signal->front();
  SymInt frame;
  if (length != nullptr && !length->empty())
    frame = length->front();
  else if (window != nullptr && !window->empty())
    frame = SymInt(window->front());
  if (frame.known()) {
    const bool onesided = context.node().get_int("onesided", 1) != 0;
    result[2] = onesided ? (floor_div(frame, 2) + SymInt(1)).dim() : frame.dim();
  }
  if (signal != nullptr && signal->size() > 1 && step != nullptr && !step->empty() &&
      step->front().number) {
    const SymInt slack = SymInt((*signal)[1]) - frame;
    result[1] = (floor_div(slack, *step->front().number) + SymInt(1)).dim();
  }
  context.set(0, context.dtype(0), std::move(result));
}

}  // namespace quench::ops
