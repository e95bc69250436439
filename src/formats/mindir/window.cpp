// SPDX-License-Identifier: Apache-2.0
// Kernels, strides and pads of MindIR.
#include "formats/mindir/window.h"

#include <algorithm>

#include "base/format.h"

namespace quench::mindir {
namespace {

constexpr std::int64_t kPad = 0, kSame = 1, kValid = 2;

/// The last `count` numbers: batch and channels come before them in some files.
Ints last_of(const std::optional<Ints>& given, std::size_t count, std::string_view what) {
  if (!given) return Ints(count, 1);
  constexpr std::int64_t kMost = 1 << 16;
  Ints result = *given;
  if (result.size() == 1) result.assign(count, result[0]);
  if (result.size() > count) result.erase(result.begin(), result.end() - static_cast<int>(count));
  if (result.size() != count ||
      std::ranges::any_of(result, [](auto each) { return each <= 0 || each > kMost; })) {
    fail(ErrorKind::BadModel, "its {} makes no sense", what);
  }
  return result;
}

/// Begin and end of each dimension side by side become all begins, then all ends.
Ints pads_of(const std::optional<Ints>& given, std::size_t count) {
  Ints pairs = given.value_or(Ints{});
  if (pairs.size() == 1) pairs.assign(2 * count, pairs[0]);
  if (pairs.size() == count) {
    Ints both;
    for (const std::int64_t each : pairs) both.insert(both.end(), {each, each});
    pairs = both;
  }
  if (pairs.empty()) pairs.assign(2 * count, 0);
  constexpr std::int64_t kMost = 1 << 16;
  if (pairs.size() != 2 * count ||
      std::ranges::any_of(pairs, [](auto each) { return each < 0 || each > kMost; })) {
    fail(ErrorKind::BadModel, "its pads make no sense");
  }
  Ints result;
  for (std::size_t i = 0; i < pairs.size(); i += 2) result.push_back(pairs[i]);
  for (std::size_t i = 1; i < pairs.size(); i += 2) result.push_back(pairs[i]);
  return result;
}

bool is_last(const Op& op, std::size_t position) {
  const std::string word = op.text("format", op.text("data_format", ""));
  return word == "NHWC" || (word.empty() && op.number("format", 0, position) == 1);
}

}  // namespace

std::int64_t pad_mode(const Op& op, std::size_t position) {
  std::string word = op.text("pad_mode", "");
  std::ranges::transform(word, word.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  });
  if (word == "same") return kSame;
  if (word == "valid") return kValid;
  if (word == "pad" || word == "calculated") return kPad;
  const std::int64_t number = op.number("pad_mode", kPad, position);
  if (!word.empty() || number < kPad || number > kValid) {
    fail(ErrorKind::Unsupported, "its pad_mode is '{}' ({}), which is not known", word, number);
  }
  return number;
}

Window window_of(Op& op, std::string_view strides, bool positional) {
  const auto at = [&](std::size_t position) { return positional ? position : Op::kNowhere; };
  Window window;
  window.last = is_last(op, at(4));
  std::optional<Ints> kernel = op.ints("kernel_size", at(1));
  if (!kernel) kernel = op.ints("ksize");
  if (!kernel) fail(ErrorKind::BadModel, "it has no kernel_size");
  // Three dimensions in pools of volumes; with batch and channels, five.
  const bool volume = kernel->size() == 3 || kernel->size() == 5;
  const std::size_t count = volume ? 3 : 2;
  window.kernel = last_of(kernel, count, "kernel_size");
  window.strides = last_of(op.ints(strides, at(2)), count, strides);
  window.dilations = last_of(op.ints("dilation"), count, "dilation");
  const std::int64_t mode = pad_mode(op, at(3));
  std::optional<Ints> pads = op.ints("pad_list");
  if (!pads) pads = op.ints("pad");
  if (!pads) pads = op.ints("pads");
  window.pads = mode == kValid ? Ints(2 * count, 0) : pads_of(pads, count);
  window.same = mode == kSame && std::ranges::count(window.pads, 0) == std::ssize(window.pads);
  return window;
}

NodeAttributes attributes_of(const Window& window) {
  NodeAttributes result{{"kernel_shape", window.kernel}, {"strides", window.strides}};
  if (std::ranges::any_of(window.dilations, [](auto each) { return each != 1; })) {
    result.emplace_back("dilations", window.dilations);
  }
  if (window.same) {
    result.emplace_back("auto_pad", std::string("SAME_UPPER"));
  } else {
    result.emplace_back("pads", window.pads);
  }
  return result;
}

ValueId image_in(Op& op, const Window& window) {
  const ValueId x = op.in(0);
  return window.last ? op.make().transpose(x, {0, 3, 1, 2}) : x;
}

void set_image(Op& op, const Window& window, ValueId value) {
  op.set(window.last ? op.make().transpose(value, {0, 2, 3, 1}) : value);
}

}  // namespace quench::mindir
