// SPDX-License-Identifier: Apache-2.0
// Operators that slice, join and rearrange tensors.
#include <algorithm>
#include <numeric>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

bool all_channels_last(const std::vector<at::Tensor>& parts) {
  return std::ranges::all_of(parts, [](const at::Tensor& part) {
    return part.dim() == 4 && !part.is_contiguous() &&
           part.is_contiguous(at::MemoryFormat::ChannelsLast);
  });
}

Kernel make_concat(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 1);
  return [axis](Call& call) {
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < call.num_in(); ++i) {
      if (call.has(i)) parts.push_back(call.in(i));
    }
    if (parts.size() == 1) return call.set(0, parts[0]);
    const std::int64_t at = wrap_axis(axis, parts[0].dim());
    if (!all_channels_last(parts)) return call.set(0, at::cat(parts, at));
    // Seen as NHWC the parts are dense, and joining them is copying rows.
    constexpr std::int64_t kPlace[] = {0, 3, 1, 2};
    for (at::Tensor& part : parts) part = part.permute({0, 2, 3, 1});
    call.set(0, at::cat(parts, kPlace[at]).permute({0, 3, 1, 2}));
  };
}

/// Sizes of the pieces: given, or as equal as they can be with the last one smaller.
Ints piece_sizes(const std::optional<Ints>& given, std::int64_t length, std::size_t count) {
  if (given && !given->empty()) return *given;
  const auto pieces = static_cast<std::int64_t>(count);
  const std::int64_t size = (length + pieces - 1) / pieces;
  Ints sizes;
  for (std::int64_t i = 0; i < pieces; ++i) {
    sizes.push_back(std::clamp<std::int64_t>(length - i * size, 0, size));
  }
  return sizes;
}

Kernel make_split(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 0);
  const IntsSource source(context, "split", 1, 13);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t along = wrap_axis(axis, x.dim());
    const Ints sizes = piece_sizes(source.get(call), x.size(along), call.num_out());
    if (sizes.size() != call.num_out()) {
      fail(ErrorKind::BadData, "{} sizes are given for {} outputs", sizes.size(), call.num_out());
    }
    const std::vector<at::Tensor> pieces = at::split_with_sizes(x, sizes, along);
    for (std::size_t i = 0; i < pieces.size(); ++i) call.set(i, pieces[i]);
  };
}

struct SliceRange {
  std::int64_t axis, start, end, step;
};

at::Tensor slice_axis(const at::Tensor& x, const SliceRange& range) {
  const std::int64_t size = x.size(range.axis);
  const auto wrapped = [size](std::int64_t at) { return at < 0 ? at + size : at; };
  if (range.step == 0) fail(ErrorKind::BadData, "a slice cannot have step 0");
  if (range.step > 0) {
    const std::int64_t start = std::clamp<std::int64_t>(wrapped(range.start), 0, size);
    const std::int64_t end = std::clamp<std::int64_t>(wrapped(range.end), start, size);
    return x.slice(range.axis, start, end, range.step);
  }
  // Backwards: turn the axis round and slice that.
  const std::int64_t first = std::clamp<std::int64_t>(wrapped(range.start), -1, size - 1);
  const std::int64_t last = std::clamp<std::int64_t>(wrapped(range.end), -1, size - 1);
  const std::int64_t start = size - 1 - first;
  const std::int64_t end = std::max(start, size - 1 - last);
  const std::int64_t step = range.step == INT64_MIN ? INT64_MAX : -range.step;
  return x.flip({range.axis}).slice(range.axis, start, end, step);
}

Kernel make_slice(const OpContext& context) {
  const IntsSource starts(context, "starts", 1, 10);
  const IntsSource ends(context, "ends", 2, 10);
  const IntsSource axes(context, "axes", 3, 10);
  const IntsSource steps(context, "steps", 4, 10);
  return [=](Call& call) {
    at::Tensor x = call.in(0);
    const Ints from = starts.get(call).value_or(Ints());
    const Ints to = ends.get(call).value_or(Ints());
    Ints along(from.size());
    std::iota(along.begin(), along.end(), 0);
    along = wrap_axes(axes.get(call).value_or(along), x.dim());
    const Ints by = steps.get(call).value_or(Ints(from.size(), 1));
    if (to.size() != from.size() || along.size() != from.size() || by.size() != from.size()) {
      fail(ErrorKind::BadData, "starts, ends, axes and steps have {}, {}, {} and {} elements",
           from.size(), to.size(), along.size(), by.size());
    }
    for (std::size_t i = 0; i < from.size(); ++i) {
      x = slice_axis(x, {along[i], from[i], to[i], by[i]});
    }
    call.set(0, std::move(x));
  };
}

Kernel make_tile(const OpContext&) {
  return [](Call& call) { call.set(0, call.in(0).repeat(to_ints(call.in(1)))); };
}

struct Blocks {
  std::int64_t size = 0;
  bool depth_first = true;  ///< "DCR": channels go round fastest
};

std::optional<Blocks> block_attributes(const OpContext& context, std::string& refusal) {
  const Blocks blocks{.size = context.node.get_int("blocksize", 0),
                      .depth_first = context.node.get_string("mode", "DCR") == "DCR"};
  constexpr std::int64_t kMaxBlock = 65536;
  if (blocks.size <= 0 || blocks.size > kMaxBlock) {
    refusal = format("blocksize {} is not possible", blocks.size);
  }
  if (!blocks.depth_first && context.node.get_string("mode", "") != "CRD") {
    refusal = format("mode '{}' is not known", context.node.get_string("mode", ""));
  }
  return refusal.empty() ? std::optional(blocks) : std::nullopt;
}

void check_blocks(const at::Tensor& x, bool fits, std::int64_t size) {
  if (fits) return;
  fail(ErrorKind::BadData, "an input of shape {} does not fit blocks of {}x{}",
       to_string(x.sizes().vec()), size, size);
}

Kernel make_depth_to_space(const OpContext& context) {
  std::string refusal;
  const auto blocks = block_attributes(context, refusal);
  if (!blocks) return Kernel::Refusal{refusal};
  return map_input([b = blocks->size, dcr = blocks->depth_first](const at::Tensor& x) {
    check_blocks(x, x.dim() == 4 && x.size(1) % (b * b) == 0, b);
    const std::int64_t n = x.size(0), h = x.size(2), w = x.size(3);
    const std::int64_t c = x.size(1) / (b * b);
    const at::Tensor parts = dcr ? x.reshape({n, b, b, c, h, w}).permute({0, 3, 4, 1, 5, 2})
                                 : x.reshape({n, c, b, b, h, w}).permute({0, 1, 4, 2, 5, 3});
    return parts.reshape({n, c, h * b, w * b});
  });
}

Kernel make_space_to_depth(const OpContext& context) {
  std::string refusal;
  const auto blocks = block_attributes(context, refusal);
  if (!blocks) return Kernel::Refusal{refusal};
  return map_input([b = blocks->size, dcr = blocks->depth_first](const at::Tensor& x) {
    check_blocks(x, x.dim() == 4 && x.size(2) % b == 0 && x.size(3) % b == 0, b);
    const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
    const at::Tensor parts = x.reshape({n, c, h, b, w, b});
    return (dcr ? parts.permute({0, 3, 5, 1, 2, 4}) : parts.permute({0, 1, 3, 5, 2, 4}))
        .reshape({n, c * b * b, h, w});
  });
}

Kernel make_reverse_sequence(const OpContext& context) {
  const std::int64_t time_axis = context.node.get_int("time_axis", 0);
  const std::int64_t batch_axis = context.node.get_int("batch_axis", 1);
  if (time_axis == batch_axis) return refuse("time_axis and batch_axis are both {}", time_axis);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const Ints lengths = to_ints(call.in(1));
    at::Tensor result = x.clone();
    // Selecting the batch axis away moves the time axis when it lies behind.
    const std::int64_t time = time_axis > batch_axis ? time_axis - 1 : time_axis;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto batch = static_cast<std::int64_t>(i);
      const at::Tensor head = x.select(batch_axis, batch).narrow(time, 0, lengths[i]);
      result.select(batch_axis, batch).narrow(time, 0, lengths[i]).copy_(head.flip({time}));
    }
    call.set(0, std::move(result));
  };
}

Kernel make_trilu(const OpContext& context) {
  const bool upper = context.node.get_int("upper", 1) != 0;
  return [upper](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t shift = call.has(1) ? to_int(call.in(1)) : 0;
    call.set(0, upper ? at::triu(x, shift) : at::tril(x, shift));
  };
}

}  // namespace

KernelInfo kernel_Concat() { return {.since = 1, .make = make_concat, .any_float = true}; }
KernelInfo kernel_Split() { return {.since = 2, .make = make_split, .any_float = true}; }
KernelInfo kernel_Slice() { return {.since = 1, .make = make_slice, .any_float = true}; }
KernelInfo kernel_Tile() { return {.since = 6, .make = make_tile, .any_float = true}; }
KernelInfo kernel_DepthToSpace() {
  return {.since = 1, .make = make_depth_to_space, .any_float = true};
}
KernelInfo kernel_SpaceToDepth() {
  return {.since = 1, .make = make_space_to_depth, .any_float = true};
}
KernelInfo kernel_ReverseSequence() {
  return {.since = 10, .make = make_reverse_sequence, .any_float = true};
}
KernelInfo kernel_Trilu() { return {.since = 14, .make = make_trilu}; }

}  // namespace quench::exec
