// SPDX-License-Identifier: Apache-2.0
// Operators over sequences, optionals and text, as far as their results are tensors.
#include <algorithm>

#include "ops/context.h"

namespace quench::ops {

/// The result is a sequence, an optional, or an element of one: only running tells its type.
void infer_nothing(InferContext&) {}

void infer_int_scalar(InferContext& context) { context.set(0, DType::Int64, Dims{}); }

void infer_bool_scalar(InferContext& context) { context.set(0, DType::Bool, Dims{}); }

void infer_string_normalizer(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, DType::String, std::nullopt);
  if (input == nullptr || input->empty() || input->size() > 2) return;
  Dims result = *input;
  result.back() = Dim{};  // words may be dropped
  context.set(0, DType::String, std::move(result));
}

void infer_tf_idf(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, DType::Float32, std::nullopt);
  if (input == nullptr || input->empty() || input->size() > 2) return;
  std::int64_t size = -1;
  for (const std::int64_t index : context.node().get_ints("ngram_indexes")) {
    if (index < 0 || index > (std::int64_t{1} << 40)) {
      fail(ErrorKind::BadModel, "ngram_indexes holds {}", index);
    }
    size = std::max(size, index + 1);
  }
  Dims result = *input;
  result.back() = Dim{size, {}};
  context.set(0, DType::Float32, std::move(result));
}

/// The parts of each string, and how many there are of them.
void infer_string_split(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, DType::String, std::nullopt);
  context.set(1, DType::Int64, std::nullopt);
  if (input == nullptr) return;
  context.set(1, DType::Int64, *input);
  Dims result = *input;
  result.emplace_back();
  context.set(0, DType::String, std::move(result));
}

/// ImageDecoder: height, width and channels of an encoded image.
void infer_image(InferContext& context) { context.set(0, DType::UInt8, unknown_dims(3)); }

}  // namespace quench::ops
