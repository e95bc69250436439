// SPDX-License-Identifier: Apache-2.0
// What both fuzzers of Paddle programs do with one that could be parsed.
#pragma once

#include <cstdlib>
#include <map>

#include "formats/paddle/program.h"
#include "formats/paddle/translate.h"
#include "quench/error.h"
#include "quench/model.h"

namespace quench::fuzz {

/// Parses with `read`, then translates with parameters of zeros, as far as they are small.
template <typename Read>
void read_program(const Read& read) {
  constexpr std::int64_t kMostElements = 4096;
  try {
    paddle::Program program = read();
    paddle::unify_quantization(program);
    paddle::drop_unread(program);
    paddle::expect_readable(program);
    std::map<std::string, Tensor> parameters;
    for (const paddle::VarItem* var : paddle::parameters_of(program)) {
      const Shape shape = var->shape.value_or(Shape());
      const auto count = num_elements(shape);
      if (!count || *count > kMostElements || num_bytes(var->dtype, *count) == std::nullopt) return;
      parameters.emplace(var->name, Tensor::zeros(var->dtype, shape));
    }
    (void)dump(paddle::translate(program, parameters));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) std::abort();
  }
}

}  // namespace quench::fuzz
