// SPDX-License-Identifier: Apache-2.0
// What the attributes of a recurrent operator say.
#pragma once

#include "exec/engine/kernels/common.h"

namespace quench::exec {

enum class RnnKind { Rnn, Gru, Lstm };

using Activation = std::function<at::Tensor(const at::Tensor&)>;

struct RnnNode {
  RnnKind kind = RnnKind::Rnn;
  std::string direction = "forward";
  std::vector<Activation> activations;  ///< `functions()` for each direction
  double clip = 0;                      ///< 0: none
  bool linear_before_reset = false;
  bool input_forget = false;
  bool batch_first = false;

  std::size_t functions() const noexcept {
    return kind == RnnKind::Rnn ? 1 : kind == RnnKind::Gru ? 2 : 3;
  }
};

/// The attributes, or the reason why they are refused.
std::optional<RnnNode> rnn_attributes(const OpContext& context, RnnKind kind, std::string& refusal);

}  // namespace quench::exec
