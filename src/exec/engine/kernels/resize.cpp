// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample: one axis after the other, each by a table of source elements and weights.
#include "exec/engine/kernels/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "exec/engine/kernels/common.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

/// Which inputs hold what: opset 10 has no region of interest and no sizes.
struct ResizeNode {
  ResizeStyle style;
  std::size_t roi = 0;     ///< 0: none
  std::size_t scales = 0;  ///< 0: none
  std::size_t sizes = 0;   ///< 0: none
  std::vector<double> fixed_scales;
  Ints axes;
  std::string policy;
  float outside_value = 0;
};

/// One request, in the order of the tensor's axes.
struct Request {
  std::vector<ResizeAxis> axes;
};

void keep_ratio(const ResizeNode& node, const at::Tensor& x, const Ints& axes, Ints& sizes,
                std::vector<double>& scales) {
  double chosen = scales[0];
  for (const double scale : scales) {
    chosen = node.policy == "not_larger" ? std::min(chosen, scale) : std::max(chosen, scale);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    scales[i] = chosen;
    sizes[i] =
        static_cast<std::int64_t>(std::floor(chosen * static_cast<double>(x.size(axes[i])) + 0.5));
  }
}

void take_sizes(const ResizeNode& node, const Call& call, const Ints& axes, Ints& sizes,
                std::vector<double>& scales) {
  const at::Tensor& x = call.in(0);
  sizes = to_ints(call.in(node.sizes));
  sizes.resize(axes.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(x.size(axes[i])));
  }
  if (node.policy != "stretch" && !axes.empty()) keep_ratio(node, x, axes, sizes, scales);
}

void take_scales(const ResizeNode& node, const Call& call, const Ints& axes, Ints& sizes,
                 std::vector<double>& scales) {
  scales = node.scales == 0 ? node.fixed_scales : to_doubles(call.in(node.scales));
  if (scales.size() != axes.size()) {
    fail(ErrorKind::BadData, "{} scales are given for {} axes", scales.size(), axes.size());
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double length = static_cast<double>(call.in(0).size(axes[i])) * scales[i];
    if (!(scales[i] > 0) || length > 1e9) {
      fail(ErrorKind::BadData, "scale {} of axis {} is not possible", scales[i], axes[i]);
    }
    sizes.push_back(static_cast<std::int64_t>(std::floor(length)));
  }
}

Request make_request(const ResizeNode& node, const Call& call) {
  const at::Tensor& x = call.in(0);
  Ints axes = node.axes;
  for (std::int64_t i = 0; node.axes.empty() && i < x.dim(); ++i) axes.push_back(i);
  axes = wrap_axes(axes, x.dim());
  Ints sizes;
  std::vector<double> scales;
  if (node.sizes != 0 && call.has(node.sizes) && call.in(node.sizes).numel() > 0) {
    take_sizes(node, call, axes, sizes, scales);
  } else {
    take_scales(node, call, axes, sizes, scales);
  }
  std::vector<double> roi;
  if (node.roi != 0 && call.has(node.roi)) roi = to_doubles(call.in(node.roi));
  Request request;
  for (const std::int64_t size : x.sizes()) request.axes.push_back({.in = size, .out = size});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = request.axes[static_cast<std::size_t>(axes[i])];
    if (sizes[i] < 0) fail(ErrorKind::BadData, "size {} is not possible", sizes[i]);
    axis.out = sizes[i];
    if (axis.in == 0 && axis.out > 0) {
      fail(ErrorKind::BadData, "axis {} is empty and cannot be resized to {}", axes[i], axis.out);
    }
    axis.scale = scales[i];
    if (roi.size() != 2 * axes.size()) continue;
    axis.roi_start = roi[i];
    axis.roi_end = roi[axes.size() + i];
  }
  return request;
}

/// The same sums by libtorch alone, where there are no loops of ours.
at::Tensor blend_there(const at::Tensor& x, std::int64_t axis, const ResizeTable& table) {
  const auto out = static_cast<std::int64_t>(table.outside.size());
  const Ints shape = {out, table.taps};
  const at::Tensor index = at::tensor(table.index, at::kLong).reshape(shape).to(x.device());
  const at::Tensor weight = at::tensor(table.weight).reshape(shape).to(x.device());
  at::Tensor result;
  for (std::int64_t tap = 0; tap < table.taps; ++tap) {
    const at::Tensor part = x.index_select(axis, index.select(1, tap)) *
                            along_axis(weight.select(1, tap), axis, x.dim());
    result = result.defined() ? result.add_(part) : part;
  }
  return result;
}

/// Weighted sums of rows: `x` is seen as [outer, in, inner].
at::Tensor blend(const at::Tensor& given, std::int64_t axis, const ResizeTable& table) {
  const at::Tensor x = given.contiguous();
  Ints shape = x.sizes().vec();
  const auto place = static_cast<std::size_t>(axis);
  const std::int64_t in = shape[place];
  const auto out = static_cast<std::int64_t>(table.outside.size());
  std::int64_t inner = 1;
  for (std::size_t i = place + 1; i < shape.size(); ++i) inner *= shape[i];
  shape[place] = out;
  at::Tensor result = at::empty(shape, x.options());
  if (result.numel() == 0) return result;
  const std::int64_t outer = x.numel() / (in * inner);
  const auto* source = x.data_ptr<float>();
  auto* target = result.data_ptr<float>();
  share(0, outer * out, std::max<std::int64_t>(1, 16384 / inner),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t at = (row % out) * table.taps;
            const float* plane = source + (row / out) * in * inner;
            float* line = target + row * inner;
            std::fill_n(line, inner, 0.0F);
            for (std::int64_t tap = at; tap < at + table.taps; ++tap) {
              const float weight = table.weight[static_cast<std::size_t>(tap)];
              if (weight == 0) continue;
              const float* from = plane + table.index[static_cast<std::size_t>(tap)] * inner;
              for (std::int64_t i = 0; i < inner; ++i) line[i] += weight * from[i];
            }
          }
        });
  return result;
}

at::Tensor resize_axis(const at::Tensor& x, std::int64_t axis, const ResizeTable& table,
                       const ResizeNode& node) {
  at::Tensor result;
  if (node.style.mode == ResizeMode::Nearest) {
    const auto count = static_cast<std::int64_t>(table.index.size());
    at::Tensor index = at::empty({count}, at::kLong);
    std::ranges::copy(table.index, index.data_ptr<std::int64_t>());
    result = x.index_select(axis, index.to(x.device()));
  } else {
    result = x.is_cuda() ? blend_there(x, axis, table) : blend(x, axis, table);
  }
  for (std::size_t i = 0; table.any_outside && i < table.outside.size(); ++i) {
    if (!table.outside[i]) continue;
    result.select(axis, static_cast<std::int64_t>(i)).fill_(node.outside_value);
  }
  return result;
}

bool needs_work(const ResizeAxis& axis, const ResizeStyle& style) {
  return axis.in != axis.out || axis.scale != 1 || style.coordinates == "tf_crop_and_resize";
}

/// libtorch's own kernels, which read channels-last memory as it lies; nothing where they differ.
std::optional<at::Tensor> by_libtorch(const at::Tensor& x, const Request& request,
                                      const ResizeStyle& style) {
  if (x.dim() != 4 || style.antialias || style.exclude_outside) return std::nullopt;
  if (!at::isFloatingType(x.scalar_type())) return std::nullopt;
  const ResizeAxis& h = request.axes[2];
  const ResizeAxis& w = request.axes[3];
  if (needs_work(request.axes[0], style) || needs_work(request.axes[1], style)) return std::nullopt;
  if (h.out == 0 || w.out == 0 || x.numel() == 0) return std::nullopt;
  const Ints size = {h.out, w.out};
  const std::string& how = style.coordinates;
  if (style.mode == ResizeMode::Nearest) {
    // Whole multiples only: then no place falls between two elements.
    const bool whole = h.out % h.in == 0 && w.out % w.in == 0 &&
                       h.scale == static_cast<double>(h.out / h.in) &&
                       w.scale == static_cast<double>(w.out / w.in);
    const bool floors = how == "asymmetric" && style.nearest == "floor";
    if (whole && floors) return at::upsample_nearest2d(x, size);
    return std::nullopt;
  }
  if (style.mode != ResizeMode::Linear) return std::nullopt;
  const auto whole_length = [](const ResizeAxis& axis) {
    return axis.scale * static_cast<double>(axis.in) == static_cast<double>(axis.out);
  };
  if (how == "align_corners" && whole_length(h) && whole_length(w)) {
    return at::upsample_bilinear2d(x, size, true);
  }
  const bool halves =
      how == "half_pixel" || (how == "pytorch_half_pixel" && h.out > 1 && w.out > 1);
  if (halves) return at::upsample_bilinear2d(x, size, false, h.scale, w.scale);
  return std::nullopt;
}

/// A line of pixels of `size` bytes, each taken from where `index` says.
template <std::size_t kSize>
void take_pixels(const char* from, const std::vector<std::int64_t>& index, std::size_t size,
                 char* to) {
  for (const std::int64_t at : index) {
    const char* pixel = from + static_cast<std::size_t>(at) * size;
    for (std::size_t i = 0; i < size; i += kSize) std::memcpy(to + i, pixel + i, kSize);
    to += size;
  }
}

/// The nearest pixels of a channels-last image; libtorch copies element by element.
std::optional<at::Tensor> nearest_pixels(const at::Tensor& x, const Request& request,
                                         const ResizeStyle& style) {
  constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;
  if (style.mode != ResizeMode::Nearest || x.dim() != 4 || x.numel() == 0 || x.is_cuda() ||
      x.is_contiguous() || !x.is_contiguous(kNhwc) || needs_work(request.axes[0], style) ||
      needs_work(request.axes[1], style)) {
    return std::nullopt;
  }
  const ResizeTable rows = make_table(request.axes[2], style);
  const ResizeTable columns = make_table(request.axes[3], style);
  if (rows.any_outside || columns.any_outside) return std::nullopt;
  const auto height = static_cast<std::int64_t>(rows.index.size());
  const auto width = static_cast<std::int64_t>(columns.index.size());
  const at::Tensor result =
      at::empty({x.size(0), x.size(1), height, width}, x.options().memory_format(kNhwc));
  const auto size = static_cast<std::size_t>(x.size(1)) * x.element_size();
  const auto line = static_cast<std::size_t>(width) * size;
  const auto take = size % 16 == 0  ? take_pixels<16>
                    : size % 8 == 0 ? take_pixels<8>
                                    : take_pixels<1>;
  const auto* from = static_cast<const char*>(x.data_ptr());
  auto* to = static_cast<char*>(result.data_ptr());
  const auto grain = static_cast<std::int64_t>(1 + (1 << 16) / (line + 1));
  share(0, x.size(0) * height, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      char* target = to + static_cast<std::size_t>(i) * line;
      const std::int64_t row = rows.index[static_cast<std::size_t>(i % height)];
      const bool again = i > begin && i % height != 0 &&
                         row == rows.index[static_cast<std::size_t>(i % height - 1)];
      if (again) {
        std::memcpy(target, target - line, line);
        continue;
      }
      const std::int64_t start = (i / height * x.size(2) + row) * x.size(3);
      take(from + static_cast<std::size_t>(start) * size, columns.index, size, target);
    }
  });
  return result;
}

at::Tensor resize(const at::Tensor& given, const Request& request, const ResizeNode& node) {
  if (auto fast = nearest_pixels(given, request, node.style)) return *fast;
  if (auto fast = by_libtorch(given, request, node.style)) return *fast;
  const bool exact = node.style.mode == ResizeMode::Nearest;
  at::Tensor x = exact || given.scalar_type() == at::kFloat ? given : given.to(at::kFloat);
  const bool nhwc =
      x.dim() == 4 && !x.is_contiguous() && x.is_contiguous(at::MemoryFormat::ChannelsLast);
  constexpr std::array<std::int64_t, 4> kPlace = {0, 3, 1, 2};
  if (nhwc) x = x.permute({0, 2, 3, 1});
  for (std::size_t i = 0; i < request.axes.size(); ++i) {
    const ResizeAxis& axis = request.axes[i];
    if (!needs_work(axis, node.style)) continue;
    if (axis.in == 0) fail(ErrorKind::BadData, "an axis without elements cannot be resized");
    x = resize_axis(x, nhwc ? kPlace[i] : static_cast<std::int64_t>(i),
                    make_table(axis, node.style), node);
  }
  if (nhwc) x = x.permute({0, 3, 1, 2});
  if (x.scalar_type() == given.scalar_type()) return x;
  if (at::isFloatingType(given.scalar_type())) return x.to(given.scalar_type());
  return at::round(x).to(given.scalar_type());
}

std::optional<ResizeMode> resize_mode(const std::string& name) {
  if (name == "nearest") return ResizeMode::Nearest;
  if (name == "linear" || name == "bilinear") return ResizeMode::Linear;
  if (name == "cubic") return ResizeMode::Cubic;
  return std::nullopt;
}

template <std::size_t kSize>
bool is_one_of(const std::string& name, const std::array<const char*, kSize>& known) {
  return std::ranges::find(known, name) != known.end();
}

Kernel make_resize(const OpContext& context) {
  constexpr std::array kCoordinates = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  constexpr std::array kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  constexpr std::array kPolicies = {"stretch", "not_larger", "not_smaller"};
  const Node& given = context.node;
  const bool old = context.opset < 11;
  const auto mode = resize_mode(given.get_string("mode", "nearest"));
  if (!mode) return refuse("mode '{}' is not known", given.get_string("mode", ""));
  ResizeNode node;
  node.style.mode = *mode;
  node.style.coordinates =
      given.get_string("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  node.style.nearest = given.get_string("nearest_mode", old ? "floor" : "round_prefer_floor");
  node.style.cubic_a = given.get_float("cubic_coeff_a", -0.75F);
  node.style.exclude_outside = given.get_int("exclude_outside", 0) != 0;
  node.style.antialias = given.get_int("antialias", 0) != 0;
  node.roi = old ? 0 : 1;
  node.scales = old ? 1 : 2;
  node.sizes = old ? 0 : 3;
  node.axes = given.get_ints("axes");
  node.policy = given.get_string("keep_aspect_ratio_policy", "stretch");
  node.outside_value = given.get_float("extrapolation_value", 0.0F);
  if (!is_one_of(node.style.coordinates, kCoordinates)) {
    return refuse("coordinate_transformation_mode '{}' is not known", node.style.coordinates);
  }
  if (!is_one_of(node.style.nearest, kNearest)) {
    return refuse("nearest_mode '{}' is not known", node.style.nearest);
  }
  if (!is_one_of(node.policy, kPolicies)) {
    return refuse("keep_aspect_ratio_policy '{}' is not known", node.policy);
  }
  Kernel kernel = [node](Call& call) {
    call.set(0, resize(call.in(0), make_request(node, call), node));
  };
  const DType type = context.input_dtype(0);
  kernel.shares = *mode == ResizeMode::Nearest && (type == DType::UInt8 || type == DType::Int8);
  return kernel;
}

/// The older operator: scales are an attribute (opset 7) or an input (opset 9).
Kernel make_upsample(const OpContext& context) {
  const auto mode = resize_mode(context.node.get_string("mode", "nearest"));
  if (!mode) return refuse("mode '{}' is not known", context.node.get_string("mode", ""));
  ResizeNode node;
  node.style.mode = *mode;
  node.style.coordinates = "asymmetric";
  node.style.nearest = "floor";
  node.policy = "stretch";
  node.scales = context.opset >= 9 ? 1 : 0;
  if (const auto* scales = context.node.get<std::vector<float>>("scales")) {
    node.fixed_scales.assign(scales->begin(), scales->end());
  }
  return [node](Call& call) { call.set(0, resize(call.in(0), make_request(node, call), node)); };
}

}  // namespace

KernelInfo kernel_Resize() { return {.since = 10, .make = make_resize}; }
KernelInfo kernel_Upsample() { return {.since = 7, .make = make_upsample}; }

}  // namespace quench::exec
