// SPDX-License-Identifier: Apache-2.0
// Tries the usual ways to prepare images, and sees which the model is surest with.
#include "quench/doctor.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "quench/presets.h"
#include "quench/session.h"

namespace quench {
namespace {

constexpr std::int64_t kSamples = 24;
/// Times as sure; less is within what other photographs would give. Measured with 24 photographs:
/// right against 0..255 is 2.5 for MobileNetV2 and 1.9 for SqueezeNet, RGB against BGR 1.7 and 2.0.
constexpr double kSurer = 1.3;
constexpr double kBetter = 3;  ///< percent of labels

std::string scores_of(const Session& session) {
  for (const Value& output : session.outputs()) {
    const auto& shape = output.type.shape;
    if (shape && shape->size() == 2 && (*shape)[1].value != 1) return output.name;
  }
  fail(ErrorKind::Unsupported,
       "the model gives no class scores [N,classes], by which ways to prepare images are told "
       "apart");
}

/// The highest share of a softmax over scores with mean 0 and deviation 1. Shares are taken as the
/// exponentials that they are.
double sureness_of(std::vector<float> scores) {
  const bool shares = std::ranges::all_of(scores, [](float x) { return x >= 0 && x <= 1; });
  double mean = 0;
  for (float& score : scores) {
    if (shares) score = std::log(std::max(score, 1e-9F));
    mean += static_cast<double>(score) / static_cast<double>(scores.size());
  }
  double variance = 0;
  for (const float score : scores) {
    variance += (score - mean) * (score - mean) / static_cast<double>(scores.size());
  }
  if (!(variance > 0) || !std::isfinite(variance)) return 0;
  double sum = 0;
  double most = 0;
  for (const float score : scores) {
    const double share = std::exp((score - mean) / std::sqrt(variance));
    sum += share;
    most = std::max(most, share);
  }
  return most / sum;
}

bool sized(const ImageOptions& image) {
  return image.resize || image.resize_shorter || image.resize_fit || image.center_crop;
}

/// The width and height of an input that fixes them.
std::optional<ImageSize> size_of(const Value& input) {
  if (!input.type.shape || input.type.shape->size() != 4) return std::nullopt;
  const std::vector<Dim>& dims = *input.type.shape;
  const bool channels_last = dims[3].value == 3 || dims[3].value == 1;
  const Dim& height = dims[channels_last ? 1 : 2];
  const Dim& width = dims[channels_last ? 2 : 3];
  if (!height.known() || !width.known()) return std::nullopt;
  return ImageSize{static_cast<int>(width.value), static_cast<int>(height.value)};
}

/// Whether it takes images of one channel.
bool is_gray(const Value& input) {
  const std::vector<Dim>& dims = *input.type.shape;
  return dims[1].value == 1 || (dims[3].value == 1 && dims[1].value != 3);
}

/// The ways to try: colours and scale are the preset's, sizes those that were given.
std::vector<DoctorTrial> ways(const ImageOptions& given, const Value& input) {
  ImageOptions base = given;
  if (!sized(given)) base.resize = size_of(input);
  std::vector<DoctorTrial> trials = {{.name = "as given", .image = base}};
  for (const Preset& preset : all_presets()) {
    if (is_gray(input) && preset.image.mean.size() > 1) continue;  // it is about colours
    DoctorTrial trial{.name = std::string(preset.name), .image = base};
    if (!sized(base)) trial.image = preset.image;
    trial.image.color = preset.image.color;
    trial.image.mean = preset.image.mean;
    trial.image.std = preset.image.std;
    const bool same = std::ranges::any_of(trials, [&](const DoctorTrial& other) {
      return other.image.color == trial.image.color && other.image.mean == trial.image.mean &&
             other.image.std == trial.image.std;
    });
    if (!same) trials.push_back(std::move(trial));
  }
  return trials;
}

/// Runs the samples and fills in what came out; returns how many there were.
std::int64_t run(Session& session, const std::string& output, DataOptions data,
                 const Context& context, DoctorTrial& trial) {
  data.image = trial.image;
  const auto source = open_data(data, session.inputs(), context);
  const std::int64_t samples = std::min(source->size(), kSamples);
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    context.check_cancelled();
    const Sample sample = source->read(i);
    const std::vector<float> scores = to_float(session.run(sample.inputs).at(output));
    trial.sureness += sureness_of(scores) / static_cast<double>(samples);
    const auto best = std::ranges::max_element(scores) - scores.begin();
    right += best == sample.label ? 1 : 0;
  }
  if (source->has_labels()) {
    trial.top1 = 100.0 * static_cast<double>(right) / static_cast<double>(samples);
  }
  return samples;
}

bool worse(const DoctorTrial& a, const DoctorTrial& b) {
  if (a.top1 && b.top1 && *a.top1 != *b.top1) return *a.top1 < *b.top1;
  return a.sureness < b.sureness;
}

void advise(DoctorResult& result) {
  const DoctorTrial& best = result.trials.front();
  const auto given = std::ranges::find(result.trials, "as given", &DoctorTrial::name);
  const bool labels = best.top1 && given->top1;
  if (labels && *best.top1 > *given->top1 + kBetter) {
    result.advice.push_back(
        format("with --preset {} the float model is right more often: {:.0f} % of {} samples "
               "against {:.0f} %",
               best.name, *best.top1, result.samples, *given->top1));
  } else if (!labels && best.sureness > kSurer * given->sureness) {
    result.advice.push_back(
        format("with --preset {} the float model is surer of its answers: {:.2f} against {:.2f}",
               best.name, best.sureness, given->sureness));
  }
  if (given->image.mean.empty() && given->image.std.empty() && !result.advice.empty()) {
    result.advice.emplace_back(
        "images are fed as numbers from 0 to 255, because neither --mean nor --std is given");
  }
}

}  // namespace

DoctorResult doctor(const std::string& model_path, const DataOptions& data,
                    const Context& context) {
  if (data.path.empty()) fail(ErrorKind::Usage, "the doctor needs images: give --data PATH");
  Session session(load(model_path), {}, context);
  if (session.inputs().size() != 1 || !session.inputs()[0].type.shape ||
      session.inputs()[0].type.shape->size() != 4) {
    fail(ErrorKind::Unsupported, "'{}' does not take one image: there is nothing to try",
         model_path);
  }
  DoctorResult result;
  result.output = scores_of(session);
  result.trials = ways(data.image, session.inputs()[0]);
  std::int64_t done = 0;
  for (DoctorTrial& trial : result.trials) {
    context.report("trying", done++, static_cast<std::int64_t>(result.trials.size()));
    result.samples = run(session, result.output, data, context, trial);
  }
  std::ranges::stable_sort(result.trials,
                           [](const DoctorTrial& a, const DoctorTrial& b) { return worse(b, a); });
  advise(result);
  return result;
}

}  // namespace quench
