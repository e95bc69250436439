// SPDX-License-Identifier: Apache-2.0
// What training with quantisation in the loop can be asked for.
#pragma once

#include <cstdint>
#include <string>

namespace quench {

/// How a quantised model is trained, or its rounding is learned. Off unless a length is given.
struct TrainingOptions {
  std::int64_t steps = 0;  ///< batches to train with
  double epochs = 0;       ///< likewise, as passes over the samples
  double minutes = 0;      ///< likewise, as time
  std::int64_t batch = 32;
  std::string optimizer = "adamw";  ///< or adam, sgd
  double rate = 0;                  ///< the highest learning rate; 0: the optimiser's usual one
  double momentum = 0.9;            ///< of sgd
  double weight_decay = 0;          ///< of weights; never of scales, biases and normalisations
  double warmup = 0.05;             ///< share of the steps in which the rate rises
  double features = 0;              ///< weight of the layers' results beside the outputs
  std::string loss = "auto";     ///< or labels, distill; auto: labels where a file of them is given
  bool flip = false;             ///< images are mirrored half of the time
  std::int64_t crop = 0;         ///< images are moved by up to so many pixels
  double zoom = 1;               ///< images are cut to a part, at least this share of their area
  std::int64_t freeze_norm = 0;  ///< steps after which batch normalisation keeps its statistics
  std::int64_t patience = 0;     ///< validations without gain until it stops; 0: never
  std::string weight_quanter = "lsq";
  std::string activation_quanter = "lsq";
  double moving_rate = 0.9;  ///< of moving averages
  std::string checkpoint;    ///< file that is written now and then; empty: none
  std::int64_t checkpoint_steps = 100;
  bool resume = false;       ///< go on from `checkpoint` where there is one
  bool adaround = false;     ///< learn the rounding of weights, layer by layer
  bool reconstruct = false;  ///< likewise, block by block, with the activations' scales
  std::int64_t reconstruct_steps = 2000;  ///< of each layer or block

  /// Whether the whole model is to be trained.
  bool any() const noexcept { return steps > 0 || epochs > 0 || minutes > 0; }
};

}  // namespace quench
