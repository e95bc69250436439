// SPDX-License-Identifier: Apache-2.0
// Attention as fusion finds it: product, softmax and product of heads that lie side by side.
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/heads.h"
#include "exec/engine/kernels/softmax.h"
#include "exec/engine/onednn/fast.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

/// [batch, heads, rows, columns] with rows that lie in one piece.
struct Heads {
  at::Tensor tensor;

  explicit Heads(const at::Tensor& given)
      : tensor(given.stride(-1) == 1 || given.size(-1) == 1 ? given : given.contiguous()) {}

  FloatRows operator[](std::int64_t head) const {
    const std::int64_t heads = tensor.size(1);
    return {tensor.data_ptr<float>() + head / heads * tensor.stride(0) +
                head % heads * tensor.stride(1),
            tensor.stride(2)};
  }
};

bool is_batch_of_heads(const at::Tensor& x) {
  return x.dim() == 4 && x.scalar_type() == at::kFloat && x.numel() > 0;
}

/// Queries [B, H, S, D], turned keys [B, H, D, T], values [B, H, T, E]; a mask that broadcasts.
bool fits(const Call& call) {
  const at::Tensor& query = call.in(AttentionNode::kQueries);
  const at::Tensor& key = call.in(AttentionNode::kKeys);
  const at::Tensor& value = call.in(AttentionNode::kValues);
  const at::Tensor& mask = call.in(AttentionNode::kMask);
  if (!can_attend() || !is_batch_of_heads(query) || !is_batch_of_heads(key) ||
      !is_batch_of_heads(value) || query.size(3) != key.size(2) || key.size(3) != value.size(2)) {
    return false;
  }
  for (const std::int64_t axis : {0, 1}) {
    if (query.size(axis) != key.size(axis) || query.size(axis) != value.size(axis)) return false;
  }
  if (!mask.defined()) return true;
  const Ints scores = {query.size(0), query.size(1), query.size(2), key.size(3)};
  return mask.scalar_type() == at::kFloat && mask.dim() <= 4 &&
         at::infer_size(scores, mask.sizes()) == scores;
}

/// Queries of all heads, in blocks that are shared between threads.
class Work {
 public:
  Work(const Call& call, float scale)
      : queries_(call.in(AttentionNode::kQueries)),
        keys_(call.in(AttentionNode::kKeys).transpose(2, 3)),
        values_(call.in(AttentionNode::kValues)),
        shape_{.keys = keys_.tensor.size(2),
               .depth = keys_.tensor.size(3),
               .width = values_.tensor.size(3)},
        rows_(queries_.tensor.size(2)),
        heads_(queries_.tensor.size(1)),
        scale_(scale),
        masked_(call.has(AttentionNode::kMask)),
        masks_(call.in(AttentionNode::kMask),
               {queries_.tensor.size(0), heads_, rows_, shape_.keys}),
        dst_(at::empty({queries_.tensor.size(0), rows_, heads_, shape_.width}, at::kFloat)) {}

  /// Results lie as the next Transpose wants them: [B, S, H, E].
  at::Tensor run() {
    const std::int64_t blocks = (rows_ + kQueries - 1) / kQueries;
    constexpr std::int64_t kWorth = 1 << 18;  // multiplications for each thread
    const std::int64_t effort =
        std::min(rows_, kQueries) * shape_.keys * (shape_.depth + shape_.width);
    share(0, queries_.tensor.size(0) * heads_ * blocks, std::max<std::int64_t>(kWorth / effort, 1),
          [&](std::int64_t begin, std::int64_t end) {
            thread_local std::vector<float> space;
            const auto needed = static_cast<std::size_t>(shape_.space());
            if (space.size() < needed) space.resize(needed);
            for (std::int64_t i = begin; i < end; ++i) {
              const std::int64_t head = i / blocks;
              if (i == begin || i % blocks == 0) {
                pack_head(shape_, keys_[head], values_[head], space.data());
              }
              if (i + blocks < end) fetch(head + 1, i % blocks * kQueries);
              ask(head, i % blocks * kQueries, space.data());
            }
          });
    return dst_.transpose(1, 2);
  }

 private:
  /// Rows of the next head: they arrive while this one is computed.
  void fetch(std::int64_t head, std::int64_t first) const {
    constexpr std::int64_t kLine = 16;  // floats
    for (const Heads* heads : {&queries_, &keys_, &values_}) {
      const FloatRows rows = (*heads)[head];
      const std::int64_t stop = std::min(first + kQueries, heads->tensor.size(2));
      for (std::int64_t i = first; i < stop; ++i) {
        const float* row = rows.data + i * rows.stride;
        for (std::int64_t n = 0; n < heads->tensor.size(3); n += kLine) __builtin_prefetch(row + n);
      }
    }
  }

  void ask(std::int64_t head, std::int64_t first, float* space) const {
    FloatRows rows = queries_[head];
    rows.data += first * rows.stride;
    const float* masks[kQueries];
    const std::int64_t count = std::min(rows_ - first, kQueries);
    for (std::int64_t i = 0; i < count; ++i) masks[i] = masks_[head * rows_ + first + i];
    const std::int64_t row = (head / heads_ * rows_ + first) * heads_ + head % heads_;
    attend(shape_,
           {.rows = rows,
            .count = count,
            .scale = scale_,
            .masks = masked_ ? masks : nullptr,
            .dst = dst_.data_ptr<float>() + row * shape_.width,
            .stride = heads_ * shape_.width},
           space);
  }

  Heads queries_, keys_, values_;
  HeadShape shape_;
  std::int64_t rows_, heads_;
  float scale_;
  bool masked_;
  RowPointers masks_;
  at::Tensor dst_;
};

/// Inputs Q, K turned, V and mask; attribute `scale`.
Kernel make_scaled_attention(const OpContext& context) {
  const float scale = context.node.get_float("scale", 1.0F);
  const auto multiply = make_batched_product();
  Kernel kernel = [=](Call& call) {
    if (fits(call)) return call.set(0, Work(call, scale).run());
    // oneDNN has split its work for more threads than it is given inside the pool.
    const auto product = [&](const at::Tensor& a, const at::Tensor& b) {
      return in_pool() ? at::matmul(a, b) : multiply(a, b);
    };
    const at::Tensor scores =
        product(call.in(AttentionNode::kQueries), call.in(AttentionNode::kKeys));
    call.set(0, product(scaled_softmax(scores, scale, call.in(AttentionNode::kMask)),
                        call.in(AttentionNode::kValues)));
  };
  kernel.shares = can_attend();
  return kernel;
}

}  // namespace

KernelInfo kernel_ScaledAttention() { return {.make = make_scaled_attention}; }

}  // namespace quench::exec
