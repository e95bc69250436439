// SPDX-License-Identifier: Apache-2.0
// The program behind quench::TrainableModel.
#include "quench/trainable.h"

#include "exec/engine/start.h"
#include "qat/engine/program.h"
#include "qat/engine/quanters.h"
#include "qat/engine/threads.h"
#include "qat/quanter_names.h"
#include "quench/ranks.h"

namespace quench::qat {
namespace {

class ProgramModel final : public Trainable {
 public:
  ProgramModel(const Model& model, const QuantPlan& plan, const QuanterMaker& make,
               const Context& context)
      : program_(model, plan, {}, make, training_place(context),
                 context.ranks && context.ranks->tensor_parallel() ? context.ranks : nullptr),
        threads_(context.num_threads()) {
    for (const ValueId id : model.graph.outputs) outputs_.push_back(model.graph[id].name);
  }

  NamedTensors forward(const NamedTensors& inputs) override {
    const Threads threads(threads_);
    const std::vector<at::Tensor> values = program_.run(inputs, outputs_);
    NamedTensors result;
    for (std::size_t i = 0; i < outputs_.size(); ++i) result[outputs_[i]] = values[i];
    return result;
  }
  std::vector<Trained> parameters() const override {
    std::vector<Trained> all = program_.weights();
    for (Trained& each : program_.quanter_parameters()) all.push_back(std::move(each));
    return all;
  }
  void train(bool on) override { program_.train(on); }
  void quantize(bool on) override { program_.quantize(on); }
  Model float_model() const override { return program_.float_model(); }
  QuantSolution solution() const override { return program_.solution(); }

 private:
  Program program_;
  int threads_;
  std::vector<std::string> outputs_;
};

}  // namespace
}  // namespace quench::qat

extern "C" __attribute__((visibility("default"))) quench::Trainable* quench_engine_trainable(
    const quench::Model& model, const quench::QuantPlan& plan, const quench::QuanterMaker& make,
    const quench::Context& context) {
  quench::exec::start_engine();
  return quench::qat::without_torch_errors(context, [&]() -> quench::Trainable* {
    return new quench::qat::ProgramModel(model, plan, make, context);
  });
}

extern "C" __attribute__((visibility("default"))) std::unique_ptr<quench::Quanter>
quench_engine_quanter(const std::string& name, const quench::QuanterSetup& setup) {
  return quench::qat::make_quanter(quench::qat::quanter_called(name, setup.is_weight), setup);
}
