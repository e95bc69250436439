// SPDX-License-Identifier: Apache-2.0
// Attention and rotary embeddings as opset 23 defines them.
#include <cmath>
#include <limits>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

struct AttentionNode {
  std::int64_t query_heads = 0, key_heads = 0, raw_scores = 0;
  float scale = 0;  ///< 0: by the size of a head
  float softcap = 0;
  bool causal = false;
};

/// [batch, length, heads * size] to [batch, heads, length, size].
at::Tensor by_head(const at::Tensor& x, std::int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor grouped(const at::Tensor& x, std::int64_t heads) {
  if (x.size(1) == 0 || heads % x.size(1) != 0) {
    fail(ErrorKind::BadData, "{} heads of keys do not fit {} of queries", x.size(1), heads);
  }
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

/// What is added to the scores: minus infinity where a key must not be seen.
at::Tensor bias_for(const Call& call, const AttentionNode& node, const at::Tensor& scores,
                    std::int64_t past) {
  at::Tensor bias = at::zeros({}, scores.options());
  const double never = -std::numeric_limits<double>::infinity();
  if (node.causal) {
    const at::Tensor seen = at::ones({scores.size(-2), scores.size(-1)}, at::kBool).tril(past);
    bias = at::zeros(seen.sizes(), scores.options()).masked_fill(seen.logical_not(), never);
  }
  if (!call.has(3)) return bias;
  at::Tensor mask = call.in(3);
  if (mask.scalar_type() == at::kBool) {
    mask = at::zeros(mask.sizes(), scores.options()).masked_fill(mask.logical_not(), never);
  }
  const std::int64_t missing = scores.size(-1) - mask.size(-1);
  if (missing > 0) mask = at::constant_pad_nd(mask, {0, missing}, never);
  return bias + mask;
}

void run_attention(Call& call, const AttentionNode& node) {
  const at::Tensor query = by_head(call.in(0), node.query_heads);
  at::Tensor key = by_head(call.in(1), node.key_heads);
  at::Tensor value = by_head(call.in(2), node.key_heads);
  const std::int64_t past = call.has(4) ? call.in(4).size(2) : 0;
  if (call.has(4)) key = at::cat({call.in(4), key}, 2);
  if (call.has(5)) value = at::cat({call.in(5), value}, 2);
  call.set(1, key);
  call.set(2, value);
  const std::int64_t heads = query.size(1);
  const double scale =
      node.scale != 0 ? node.scale : 1 / std::sqrt(static_cast<double>(query.size(3)));
  at::Tensor scores = at::matmul(query * scale, grouped(key, heads).transpose(2, 3));
  // Before the mask: minus infinity must stay what it is.
  if (node.softcap > 0) scores = at::tanh(scores / node.softcap) * node.softcap;
  if (node.raw_scores == 0) call.set(3, scores);
  const at::Tensor bias = bias_for(call, node, scores, past);
  scores = scores + bias;
  if (node.raw_scores == 1) call.set(3, scores);
  at::Tensor shares = at::softmax(scores, -1);
  if (bias.dim() > 0) {
    // A query that may see nothing takes nothing.
    const at::Tensor blind = at::isneginf(at::amax(bias, -1, true));
    shares = at::where(blind, at::zeros({}, shares.options()), shares);
  }
  if (node.raw_scores == 3) call.set(3, shares);
  at::Tensor result = at::matmul(shares, grouped(value, heads));
  if (call.in(0).dim() == 3) result = result.transpose(1, 2).flatten(2);
  call.set(0, std::move(result));
}

Kernel make_attention(const OpContext& context) {
  const Node& given = context.node;
  const AttentionNode node{.query_heads = given.get_int("q_num_heads", 0),
                           .key_heads = given.get_int("kv_num_heads", 0),
                           .raw_scores = given.get_int("qk_matmul_output_mode", 0),
                           .scale = given.get_float("scale", 0.0F),
                           .softcap = given.get_float("softcap", 0.0F),
                           .causal = given.get_int("is_causal", 0) != 0};
  const int rank = context.input_rank(0);
  if (rank != 4 && (node.query_heads <= 0 || node.key_heads <= 0)) {
    return refuse("inputs of rank 3 need q_num_heads and kv_num_heads");
  }
  if (context.has_input(6)) return refuse("nonpad_kv_seqlen is not supported");
  if (given.get_int("left_window_size", -1) >= 0 || given.get_int("right_window_size", -1) >= 0) {
    return refuse("a window is not supported");
  }
  if (given.outputs.size() > 3 && (node.raw_scores == 2 || node.softcap > 0)) {
    return refuse("this qk_matmul_output is not supported");
  }
  return [node](Call& call) { run_attention(call, node); };
}

Kernel make_rotary(const OpContext& context) {
  const bool interleaved = context.node.get_int("interleaved", 0) != 0;
  const std::int64_t heads = context.node.get_int("num_heads", 0);
  const std::int64_t part = context.node.get_int("rotary_embedding_dim", 0);
  if (context.input_rank(0) != 4 && heads <= 0) return refuse("inputs of rank 3 need num_heads");
  return [=](Call& call) {
    const at::Tensor x = by_head(call.in(0), heads);
    const std::int64_t size = part > 0 ? part : x.size(3);
    const auto table = [&](std::size_t input) {
      const at::Tensor& cache = call.in(input);
      at::Tensor rows = cache;
      if (call.has(3)) {
        const at::Tensor places = wrap_indices(call.in(3), cache.size(0));
        rows = cache.index_select(0, places.reshape({-1}))
                   .reshape({places.size(0), places.size(1), cache.size(1)});
      }
      return rows.unsqueeze(1);  // the same for every head
    };
    const at::Tensor cosine = table(1);
    const at::Tensor sine = table(2);
    const at::Tensor turned = x.narrow(3, 0, size);
    const at::Tensor a = interleaved ? turned.slice(3, 0, size, 2) : turned.narrow(3, 0, size / 2);
    const at::Tensor b =
        interleaved ? turned.slice(3, 1, size, 2) : turned.narrow(3, size / 2, size / 2);
    const at::Tensor real = a * cosine - b * sine;
    const at::Tensor imaginary = a * sine + b * cosine;
    at::Tensor result =
        interleaved ? at::stack({real, imaginary}, -1).flatten(3) : at::cat({real, imaginary}, 3);
    if (size < x.size(3)) result = at::cat({result, x.narrow(3, size, x.size(3) - size)}, 3);
    call.set(0, call.in(0).dim() == 3 ? result.transpose(1, 2).flatten(2) : result);
  };
}

}  // namespace

KernelInfo kernel_Attention() { return {.since = 23, .make = make_attention}; }
KernelInfo kernel_RotaryEmbedding() { return {.since = 23, .make = make_rotary}; }

}  // namespace quench::exec
