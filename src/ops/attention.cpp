// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding.
#include "ops/context.h"

namespace quench::ops {
namespace {

/// Heads and their size, from [batch, heads, steps, size] or [batch, steps, heads*size].
struct Heads {
  Dim count;
  Dim steps;
  Dim size;
};

Heads read_heads(const Dims& dims, std::int64_t count) {
  if (dims.size() == 4) return {dims[1], dims[2], dims[3]};
  if (dims.size() != 3) {
    fail(ErrorKind::BadModel, "an input of Attention must have 3 or 4 dimensions, but is {}",
         shape_text(dims));
  }
  if (count < 1)
    fail(ErrorKind::BadModel, "inputs of 3 dimensions need q_num_heads and kv_num_heads");
  return {Dim{count, {}}, dims[1], floor_div(SymInt(dims[2]), count).dim()};
}

}  // namespace

void infer_attention(InferContext& context) {
  const Dims* q = context.shape(0);
  const Dims* k = context.shape(1);
  const Dims* v = context.shape(2);
  for (std::size_t i = 0; i < 4; ++i) context.set(i, context.dtype(i == 3 ? 0 : i), std::nullopt);
  if (q == nullptr || k == nullptr || v == nullptr) return;
  const Heads query = read_heads(*q, context.node().get_int("q_num_heads", 0));
  const Heads key = read_heads(*k, context.node().get_int("kv_num_heads", 0));
  const Heads value = read_heads(*v, context.node().get_int("kv_num_heads", 0));
  const Dim batch = (*q)[0];
  if (q->size() == 4) {
    context.set(0, context.dtype(0), Dims{batch, query.count, query.steps, value.size});
  } else {
    context.set(0, context.dtype(0),
                Dims{batch, query.steps, (SymInt(query.count) * SymInt(value.size)).dim()});
  }
  const Dims* past = context.shape(4);
  Dim total = key.steps;
  if (past != nullptr && past->size() == 4) {
    total = (SymInt((*past)[2]) + SymInt(key.steps)).dim();
  } else if (context.has_input(4)) {
    total = Dim{};
  }
  context.set(1, context.dtype(1), Dims{batch, key.count, total, key.size});
  context.set(2, context.dtype(2), Dims{batch, value.count, total, value.size});
  context.set(3, context.dtype(0), Dims{batch, query.count, query.steps, total});
}

}  // namespace quench::ops
