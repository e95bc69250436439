// SPDX-License-Identifier: Apache-2.0
// Resize, Upsample, GridSample and AffineGrid.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/context.h"

namespace quench::ops {
namespace {

Dim scaled_dim(const Dim& dim, double scale) {
  if (!(scale > 0)) fail(ErrorKind::BadModel, "a scale is {}, which must be positive", scale);
  if (scale == 1.0) return dim;
  if (!dim.known()) {
    const bool whole = scale == std::floor(scale) && scale < 1e6;
    return whole ? (SymInt(dim) * SymInt(static_cast<std::int64_t>(scale))).dim() : Dim{};
  }
  // The runtimes multiply in single precision; doing the same keeps their rounding.
  const double size = std::floor(static_cast<float>(dim.value) * static_cast<float>(scale));
  constexpr double kLargest = 9.0e18;
  return size < kLargest ? Dim{static_cast<std::int64_t>(size), {}} : Dim{};
}

/// The floats of an attribute or of a constant input; nothing when they are not known.
std::optional<std::vector<float>> read_scales(const InferContext& context, std::size_t index) {
  if (const auto* list = context.node().get<std::vector<float>>("scales")) return *list;
  const Tensor* tensor = context.constant(index);
  if (tensor == nullptr || tensor->dtype() != DType::Float32 || tensor->rank() != 1) {
    return std::nullopt;
  }
  const auto data = tensor->data<float>();
  return std::vector<float>(data.begin(), data.end());
}

/// The dimensions that scales and sizes speak of.
std::vector<std::size_t> resized_axes(const InferContext& context, std::size_t rank) {
  std::vector<std::size_t> result;
  if (const auto* axes = context.node().get<std::vector<std::int64_t>>("axes")) {
    checked_axes(*axes, rank);
    for (const std::int64_t axis : *axes) result.push_back(checked_axis(axis, rank));
    return result;
  }
  result.resize(rank);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

void expect_entries(std::string_view what, std::size_t count, std::size_t wanted) {
  if (count != wanted) {
    fail(ErrorKind::BadModel, "{} must have {} entries, but has {}", what, wanted, count);
  }
}

/// Sizes under keep_aspect_ratio_policy: one scale for all axes, chosen among theirs.
void fit_sizes(Dims& dims, const std::vector<std::size_t>& axes, const SymInts& sizes,
               bool larger) {
  double scale = larger ? 0 : 1e300;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Dim& dim = dims[axes[i]];
    if (!dim.known() || dim.value == 0 || !sizes[i].number) {
      for (const std::size_t axis : axes) dims[axis] = Dim{};
      return;
    }
    const double ratio = static_cast<double>(*sizes[i].number) / static_cast<double>(dim.value);
    scale = larger ? std::max(scale, ratio) : std::min(scale, ratio);
  }
  for (const std::size_t axis : axes) {
    const double size = std::floor(scale * static_cast<double>(dims[axis].value) + 0.5);
    dims[axis] = size < 9.0e18 ? Dim{static_cast<std::int64_t>(size), {}} : Dim{};
  }
}

void apply_sizes(const InferContext& context, Dims& dims, const SymInts& sizes) {
  const auto axes = resized_axes(context, dims.size());
  expect_entries("sizes", sizes.size(), axes.size());
  for (const SymInt& size : sizes) {
    if (size.number && *size.number < 0) fail(ErrorKind::BadModel, "sizes holds {}", *size.number);
  }
  const std::string policy = context.node().get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") return fit_sizes(dims, axes, sizes, policy == "not_smaller");
  for (std::size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = sizes[i].dim();
}

void apply_scales(const InferContext& context, Dims& dims, const std::vector<float>& scales) {
  const auto axes = resized_axes(context, dims.size());
  expect_entries("scales", scales.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    dims[axes[i]] = scaled_dim(dims[axes[i]], static_cast<double>(scales[i]));
  }
}

}  // namespace

void infer_resize(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  // Opset 10 had the scales where opset 11 has the region of interest; Upsample never had one.
  const bool old = context.opset() < 11 || context.node().op_type == "Upsample";
  Dims result = *input;
  // Exporters fill the one that is not used, sizes or scales, with an empty tensor.
  const SymInts* sizes = old ? nullptr : context.ints(3);
  const bool unused = sizes != nullptr && sizes->empty();
  const auto scales = read_scales(context, old ? 1 : 2);
  if (sizes != nullptr && !unused) {
    apply_sizes(context, result, *sizes);
  } else if (scales && !scales->empty() && (old || unused || !context.has_input(3))) {
    apply_scales(context, result, *scales);
  } else {
    for (const std::size_t axis : resized_axes(context, result.size())) result[axis] = Dim{};
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_grid_sample(InferContext& context) {
  const Dims* input = context.shape(0);
  const Dims* positions = context.shape(1);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr || positions == nullptr) return;
  if (input->size() < 3 || input->size() != positions->size()) {
    fail(ErrorKind::BadModel, "the sampling positions {} do not fit input {}",
         shape_text(*positions), shape_text(*input));
  }
  Dims result{(*input)[0], (*input)[1]};
  result.insert(result.end(), positions->begin() + 1, positions->end() - 1);
  context.set(0, context.dtype(0), std::move(result));
}

void infer_affine_grid(InferContext& context) {
  context.set(0, context.dtype(0), std::nullopt);
  const SymInts* size = context.ints(1);
  if (size == nullptr || size->size() < 4) return;
  Dims result{size->front().dim()};
  for (std::size_t i = 2; i < size->size(); ++i) result.push_back((*size)[i].dim());
  result.push_back(Dim{static_cast<std::int64_t>(size->size()) - 2, {}});
  context.set(0, context.dtype(0), std::move(result));
}

}  // namespace quench::ops
