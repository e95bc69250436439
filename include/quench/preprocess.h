// SPDX-License-Identifier: Apache-2.0
// What a tensor goes through before it is quantised while a model is trained. Needs libtorch.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "quench/quanter.h"

namespace quench {

/// Something learned that a tensor goes through before it is quantised (PaddleSlim's hooks
/// `weight_preprocess` and `act_preprocess`). It is not part of the written model.
class Preprocess {
 public:
  virtual ~Preprocess() = default;
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  virtual std::vector<Trained> parameters() const { return {}; }
};
using PreprocessFactory = std::function<std::unique_ptr<Preprocess>()>;

/// Something in front of a quanter.
class PreprocessedQuanter final : public Quanter {
 public:
  PreprocessedQuanter(std::unique_ptr<Preprocess> first, std::unique_ptr<Quanter> quanter)
      : first_(std::move(first)), quanter_(std::move(quanter)) {}
  at::Tensor forward(const at::Tensor& x) override {
    quanter_->train(training());
    return quanter_->forward(first_->forward(x));
  }
  QuantParams params() const override { return quanter_->params(); }
  std::vector<Trained> parameters() const override {
    std::vector<Trained> all = quanter_->parameters();
    for (Trained& each : first_->parameters()) all.push_back(std::move(each));
    return all;
  }
  std::vector<at::Tensor> state() const override { return quanter_->state(); }
  at::Tensor written(const at::Tensor& weight) const override {
    return quanter_->written(first_->forward(weight));
  }
  bool ready() const override { return quanter_->ready(); }

 private:
  std::unique_ptr<Preprocess> first_;
  std::unique_ptr<Quanter> quanter_;
};

}  // namespace quench
