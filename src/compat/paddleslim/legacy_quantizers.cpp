// SPDX-License-Identifier: Apache-2.0
// The quantisers of PaddleSlim's legacy interface.
#include <array>

#include "base/format.h"
#include "base/nearest.h"
#include "quench/legacy_ptq.h"

namespace quench {
namespace {

constexpr std::string_view kPerChannel = "channel_wise_abs_max";
constexpr std::string_view kWhole = "abs_max";

}  // namespace

KLQuantizer::KLQuantizer(int bits, int num_bins, int upsampled)
    : LegacyQuantizer{
          .observer = "KL", .quant_bits = bits, .bins = num_bins, .upsample_bins = upsampled} {}
HistQuantizer::HistQuantizer(int bits, int num_bins, int upsampled, double percent)
    : LegacyQuantizer{.observer = "hist",
                      .quant_bits = bits,
                      .bins = num_bins,
                      .hist_percent = percent,
                      .upsample_bins = upsampled} {}
AbsmaxQuantizer::AbsmaxQuantizer(int bits)
    : LegacyQuantizer{.observer = std::string(kWhole), .quant_bits = bits} {}
PerChannelAbsmaxQuantizer::PerChannelAbsmaxQuantizer(int bits)
    : LegacyQuantizer{.observer = std::string(kPerChannel), .quant_bits = bits} {}

LegacyQuantizer legacy_quantizer(std::string_view name) {
  const std::array<std::pair<std::string, LegacyQuantizer>, 4> all = {
      {{"KLQuantizer", KLQuantizer()},
       {"HistQuantizer", HistQuantizer()},
       {"AbsmaxQuantizer", AbsmaxQuantizer()},
       {"PerChannelAbsmaxQuantizer", PerChannelAbsmaxQuantizer()}}};
  std::vector<std::string> names;
  for (const auto& [each, quantizer] : all) {
    if (each == name) return quantizer;
    names.push_back(each);
  }
  fail(ErrorKind::Usage, "there is no quantizer '{}'{}; there are {}", name,
       did_you_mean(name, names), fmt::join(names, ", "));
}

QuantConfig legacy_config(const LegacyQuantizer& activation, const LegacyQuantizer& weight) {
  if (activation.observer == kPerChannel) {
    fail(ErrorKind::Usage,
         "PerChannelAbsmaxQuantizer is for weights; for activations take KLQuantizer, "
         "HistQuantizer or AbsmaxQuantizer");
  }
  if (weight.observer != kPerChannel && weight.observer != kWhole) {
    fail(ErrorKind::Usage,
         "a quantizer by '{}' is for activations; for weights take PerChannelAbsmaxQuantizer or "
         "AbsmaxQuantizer",
         weight.observer);
  }
  QuantConfig config;
  config.global.activation_observer = activation.observer;
  config.global.activation_bits = activation.quant_bits;
  config.global.weight_observer = weight.observer;
  config.global.weight_bits = weight.quant_bits;
  config.hist_percent = activation.hist_percent;
  config.bins = activation.bins;
  return config;
}

void LegacyPTQ::save_quantized_model(const ObservedModel& observed, const std::string& path,
                                     const InputShapes& input_spec) const {
  quench::save_quantized_model(convert(observed), path, input_spec, {.fake_quantize = true});
}

}  // namespace quench
