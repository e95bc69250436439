// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "qat/train.h"

#include <chrono>
#include <cmath>

#include "base/format.h"
#include "exec/engine/start.h"
#include "qat/engine/checkpoint.h"
#include "qat/engine/loss.h"
#include "qat/engine/optimizer.h"
#include "qat/engine/quanters.h"
#include "qat/engine/rank_sums.h"
#include "qat/engine/threads.h"
#include "qat/quanter_names.h"
#include "quench/ranks.h"

namespace quench::qat {
namespace {

using Clock = std::chrono::steady_clock;

/// Validations in a whole training, at least one an epoch where epochs are long.
constexpr std::int64_t kValidations = 10;
constexpr std::int64_t kPoints = 200;  ///< of the curve

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

MakeQuanter quanters_of(const TrainingOptions& options) {
  const std::string weights = quanter_called(options.weight_quanter, true);
  const std::string activations = quanter_called(options.activation_quanter, false);
  return [=](const std::string&, const std::string&, QuanterSetup setup) {
    setup.moving_rate = options.moving_rate;
    return make_quanter(setup.is_weight ? weights : activations, setup);
  };
}

/// The part of every batch that is this rank's.
Share part_of(const Batches& batches, const Request& request) {
  const Ranks* ranks = request.context.ranks.get();
  if (ranks == nullptr) return {.first = 0, .count = batches.batch()};
  if (request.samples.run_size() > 1) {
    fail(ErrorKind::Unsupported,
         "the model fixes its batch, so that ranks cannot share one; leave out --distributed");
  }
  if (batches.batch() < ranks->size()) {
    fail(ErrorKind::Usage, "{} ranks cannot share a batch of {}; give --train-batch {} or more",
         ranks->size(), batches.batch(), ranks->size());
  }
  if (request.options.minutes > 0) {
    fail(ErrorKind::Usage,
         "ranks have clocks of their own: with --distributed give --steps or --epochs, not "
         "--minutes");
  }
  return share_of(batches.batch(), 1, ranks->rank(), ranks->size());
}

class Trainer {
 public:
  explicit Trainer(const Request& request)
      : request_(request),
        options_(request.options),
        context_(request.context),
        program_(request.start, request.plan, request.solution, quanters_of(options_),
                 training_place(context_)),
        batches_(request.samples, options_, context_.seed),
        loss_(request, options_.features),
        optimizer_((program_.keep_norms(options_.freeze_norm > 0 ? request.norms
                                                                 : std::vector<FoldedNorm>()),
                    options_.optimizer == "sgd" ? program_.weights() : program_.weights_by_scale()),
                   program_.quanter_parameters(), options_, batches_.samples()),
        part_(part_of(batches_, request)),
        sums_(context_, static_cast<double>(part_.count) / static_cast<double>(batches_.batch()),
              optimizer_.learned()) {
    if (program_.weights().empty()) {
      fail(ErrorKind::Unsupported, "the model has no layer with weights to train");
    }
    total_ = options_.steps;
    if (total_ == 0 && options_.epochs > 0) {
      total_ = std::max<std::int64_t>(
          1, std::llround(options_.epochs * static_cast<double>(batches_.per_epoch())));
    }
  }

  Result run() {
    const auto begin = Clock::now();
    program_.check_gradients(batches_.plain(0, batches_.batch()).feeds, loss_.wanted());
    result_.report.samples = batches_.samples();
    result_.report.score_name = request_.score;
    start();
    const std::int64_t first = step_;
    while (!done(begin)) {
      context_.check_cancelled();
      one_step(progress(begin));
      after_step(begin);
      if (stopped_) break;
    }
    validate();  // of the last step, where it was not yet
    finish();
    result_.report.steps = step_;
    result_.report.seconds = seconds_since(begin);
    result_.report.images_per_second =
        static_cast<double>((step_ - first) * batches_.batch()) / std::max(training_seconds_, 1e-9);
    return std::move(result_);
  }

 private:
  void start() {
    if (request_.validate) {
      result_.report.start_score = request_.validate(request_.start, request_.solution);
      best_ = *result_.report.start_score;
    }
    if (options_.resume) resume();
    if (context_.ranks) {
      context_.ranks->agree("the step that training goes on from", std::to_string(step_));
    }
  }

  double progress(Clock::time_point begin) const {
    if (total_ > 0) return static_cast<double>(step_) / static_cast<double>(total_);
    return std::min(seconds_since(begin) / (60 * options_.minutes), 1.0);
  }

  bool done(Clock::time_point begin) const {
    if (total_ > 0 && step_ >= total_) return true;
    return options_.minutes > 0 && seconds_since(begin) >= 60 * options_.minutes;
  }

  void one_step(double progress) {
    const auto begin = Clock::now();
    program_.train(true);
    if (step_ >= options_.freeze_norm) program_.freeze_norms();
    const TrainingBatch batch = batches_.at_step(step_, part_);
    optimizer_.zero_grad();
    at::Tensor loss = loss_.of(batch, program_.run(batch.feeds, loss_.wanted()));
    auto value = loss.item<double>();
    if (!std::isfinite(value)) blame(batch);
    sums_.backward(loss);
    value = sums_.sum(value);
    optimizer_.step(progress);
    sums_.average(seen());
    if (step_ == 0) context_.info(format("the first loss is {:.4g}", value));
    ++step_;
    loss_sum_ += value;
    ++loss_count_;
    training_seconds_ += seconds_since(begin);
  }

  /// What the program remembers beside what it learns.
  std::vector<at::Tensor> seen() const {
    if (!context_.ranks) return {};
    std::vector<at::Tensor> state = program_.state();
    const std::size_t learned = program_.weights().size() + program_.quanter_parameters().size();
    state.erase(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(learned));
    return state;
  }

  /// A loss that is not a number: says where it came from. Checkpoints stay as they are.
  [[noreturn]] void blame(const TrainingBatch& batch) {
    const at::NoGradGuard no_gradients;
    std::string where = "the outputs";
    for (const Node& node : program_.graph().nodes) {
      const std::string name = output_name(program_.graph(), node);
      if (name.empty()) continue;
      const at::Tensor value = program_.run(batch.feeds, {name})[0];
      if (!value.defined() || !value.is_floating_point()) continue;
      if (at::isfinite(value).all().item<bool>()) continue;
      where = label(program_.graph(), node);
      break;
    }
    fail(ErrorKind::BadData,
         "the loss is not a number at step {}, first in {}; take a lower --rate{}", step_ + 1,
         where,
         options_.checkpoint.empty()
             ? ""
             : format("; the checkpoint '{}' is as it was", options_.checkpoint));
  }

  void after_step(Clock::time_point begin) {
    const std::int64_t expected = std::max<std::int64_t>(
        total_ > 0 ? total_
                   : static_cast<std::int64_t>(static_cast<double>(step_) /
                                               std::max(progress(begin), 1e-3)),
        1);
    const std::int64_t every = std::max<std::int64_t>(1, expected / kValidations);
    if (step_ % std::max<std::int64_t>(1, expected / kPoints) == 0) note_point();
    if (step_ % every == 0) validate();
    const std::int64_t stride = std::max<std::int64_t>(1, options_.checkpoint_steps);
    if (!options_.checkpoint.empty() && step_ % stride == 0) save();
    context_.report(format("training, loss {:.4g}{}", last_loss_,
                           request_.validate ? format(", best {:.4g}", best_) : ""),
                    total_ > 0 ? step_ : static_cast<std::int64_t>(progress(begin) * 1000),
                    total_ > 0 ? total_ : 1000);
  }

  void note_point() {
    last_loss_ = loss_sum_ / static_cast<double>(std::max<std::int64_t>(loss_count_, 1));
    result_.report.curve.push_back({.step = step_, .loss = last_loss_, .rate = optimizer_.rate()});
    loss_sum_ = 0;
    loss_count_ = 0;
  }

  void keep() {
    const at::NoGradGuard no_gradients;
    best_state_.clear();
    for (const at::Tensor& each : program_.state()) best_state_.push_back(each.detach().clone());
    result_.report.best_step = step_;
  }

  /// The best model becomes the result.
  void finish() {
    if (result_.report.best_step == 0) {
      result_.model = request_.start;
      result_.solution = request_.solution;
      return;
    }
    restore(best_state_, program_.state());
    result_.model = program_.float_model();
    result_.solution = program_.solution();
  }

  void validate() {
    if (validated_ == step_) return;
    validated_ = step_;
    program_.train(false);
    if (!request_.validate) return keep();
    const double score = request_.validate(program_.float_model(), program_.solution());
    if (result_.report.curve.empty() || result_.report.curve.back().step != step_) note_point();
    result_.report.curve.back().score = score;
    context_.info(
        format("step {}: loss {:.4g}, validation {:.4g} (before training {:.4g}), rate {:.3g}",
               step_, last_loss_, score, *result_.report.start_score, optimizer_.rate()));
    if (score > best_) {
      best_ = score;
      without_gain_ = 0;
      keep();
    } else if (++without_gain_; options_.patience > 0 && without_gain_ >= options_.patience) {
      stopped_ = true;
    }
  }

  CheckpointParts parts() {
    return {.step = step_,
            .validated = validated_,
            .without_gain = without_gain_,
            .best = best_,
            .state = program_.state(),
            .best_state = best_state_,
            .optimizer = &optimizer_.torch(),
            .report = result_.report};
  }

  void save() {
    if (!context_.writes()) return;
    save_checkpoint(options_.checkpoint, request_.origin, parts());
  }

  void resume() {
    CheckpointParts found = parts();
    if (!load_checkpoint(options_.checkpoint, request_.origin, found)) return;
    step_ = found.step;
    validated_ = found.validated;
    without_gain_ = found.without_gain;
    best_ = found.best;
    best_state_ = found.best_state;
    result_.report = found.report;
  }

  const Request& request_;
  const TrainingOptions& options_;
  const Context& context_;
  Program program_;
  Batches batches_;
  Loss loss_;
  Optimizer optimizer_;
  Share part_;
  RankSums sums_;
  Result result_;
  std::vector<at::Tensor> best_state_;
  std::int64_t total_ = 0;
  std::int64_t step_ = 0;
  std::int64_t validated_ = -1;
  std::int64_t without_gain_ = 0;
  std::int64_t loss_count_ = 0;
  double loss_sum_ = 0;
  double last_loss_ = 0;
  double best_ = 0;
  double training_seconds_ = 0;
  bool stopped_ = false;
};

}  // namespace
}  // namespace quench::qat

extern "C" __attribute__((visibility("default"))) quench::qat::Result quench_engine_train(
    const quench::qat::Request& request) {
  quench::exec::start_engine();
  const quench::qat::Threads threads(request.context.num_threads());
  return quench::qat::without_torch_errors(request.context,
                                           [&] { return quench::qat::Trainer(request).run(); });
}
