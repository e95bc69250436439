// SPDX-License-Identifier: Apache-2.0
// Quanters by name, and what those that watch ranges share.
#include "qat/engine/quanters.h"

#include <map>

#include "base/format.h"

namespace quench::qat {

std::unique_ptr<Quanter> make_quanter(const std::string& name, const QuanterSetup& setup) {
  static const std::map<std::string, std::unique_ptr<Quanter> (*)(const QuanterSetup&)> kMakers = {
#define QUENCH_QUANTER(name, use, summary) {#name, &make_##name},
#include "qat/quanters.inc"
#undef QUENCH_QUANTER
  };
  const auto found = kMakers.find(name);
  if (found == kMakers.end()) fail(ErrorKind::Internal, "no quanter is called '{}'", name);
  return found->second(setup);
}

std::vector<Range> ranges_of(const at::Tensor& x, const QuantSpec& spec) {
  const at::Tensor seen = x.detach();
  if (spec.axis < 0) {
    // As a row of elements in whatever order: libtorch would first copy images of channels last.
    const bool dense = seen.is_non_overlapping_and_dense();
    const auto [least, most] = at::aminmax(dense ? seen.as_strided({seen.numel()}, {1}) : seen);
    return in_ranges(least, most);
  }
  const auto [least, most] = at::aminmax(seen.movedim(spec.axis, 0).flatten(1), 1);
  return in_ranges(least, most);
}

std::vector<Range> in_ranges(const at::Tensor& least, const at::Tensor& most) {
  // One copy from a GPU, which would have to be waited for each time.
  const at::Tensor both =
      at::stack({least.reshape({-1}), most.reshape({-1})}).to(at::kCPU, at::kDouble);
  const double* numbers = both.data_ptr<double>();
  const std::int64_t count = least.numel();
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    ranges.push_back({.min = numbers[i], .max = numbers[count + i]});
  }
  return ranges;
}

std::vector<Range> covered(const QuantParams& params) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < params.scale.size(); ++i) {
    const auto scale = static_cast<double>(params.scale[i]);
    const std::int64_t zero = params.zero_point[i];
    ranges.push_back({.min = scale * static_cast<double>(params.spec.q_min() - zero),
                      .max = scale * static_cast<double>(params.spec.q_max() - zero)});
  }
  return ranges;
}

RangeQuanter::RangeQuanter(const QuanterSetup& setup)
    : setup_(setup),
      scale_(at::ones({1})),
      zero_point_(at::zeros({1})),
      ready_(at::zeros({}, at::kBool)) {
  if (!setup.start) return;
  scale_ = scale_tensor(*setup.start);
  zero_point_ = zero_point_tensor(*setup.start);
  ready_.fill_(true);
}

void RangeQuanter::set(const std::vector<Range>& ranges) {
  std::vector<Range> kept = ranges;
  for (Range& range : kept) {
    if (!setup_.bounds) break;
    range.min = std::max(range.min, setup_.bounds->min);
    range.max = std::min(range.max, setup_.bounds->max);
  }
  const QuantParams params = choose_params(setup_.spec, kept);
  const at::Tensor scale = scale_tensor(params);
  // In place: checkpoints hold these tensors.
  scale_.resize_(scale.sizes()).copy_(scale);
  zero_point_.resize_(scale.sizes()).copy_(zero_point_tensor(params));
  ready_.fill_(true);
}

at::Tensor RangeQuanter::forward(const at::Tensor& x) {
  if (training()) {
    const at::NoGradGuard no_gradients;
    observe(x);
  }
  // What autograd keeps must not change when the next batch moves the range.
  return ready() ? fake_quantize(x, scale_.clone(), zero_point_.clone(), steps_of(spec())) : x;
}

QuantParams RangeQuanter::params() const {
  if (!ready()) fail(ErrorKind::Usage, "no batch was seen yet: there is no scale to write");
  return to_params(setup_.spec, scale_, zero_point_);
}

}  // namespace quench::qat
