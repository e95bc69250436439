// SPDX-License-Identifier: Apache-2.0
// Reconstruction (AdaRound; BRECQ, Li et al., 2021; QDrop, Wei et al., 2022): block by block, the
// rounding of weights, biases and the scales of activations learn to give what the float block
// gives. Inputs of a block are kept from the one before it.
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

#include "base/format.h"
#include "exec/engine/start.h"
#include "qat/engine/adaround.h"
#include "qat/engine/batches.h"
#include "qat/engine/blocks.h"
#include "qat/engine/cache.h"
#include "qat/engine/loss.h"
#include "qat/engine/optimizer.h"
#include "qat/engine/threads.h"
#include "qat/train.h"

namespace quench::qat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRun = 16;                ///< samples that are computed at once
constexpr std::int64_t kBatch = 32;              ///< samples of a step
constexpr std::int64_t kLeastBatch = 8;          ///< where a block's results are large
constexpr std::int64_t kMostElements = 1 << 21;  ///< of the results of a step
constexpr double kSoft = 0.2;                    ///< share of the steps in which rounding is free
constexpr double kSharpFirst = 20;               ///< of the push towards a decision
constexpr double kSharpLast = 2;
constexpr double kPush = 1;  ///< its weight beside the relative error
constexpr double kRoundingRate = 0.01;
constexpr double kOtherRate = 1e-3;  ///< of scales and biases, relative to their size
constexpr double kDrop = 0.5;        ///< share of activations that a step leaves in float
constexpr std::size_t kBlockLayers = 3;

class Reconstruction {
 public:
  explicit Reconstruction(const Request& request)
      : request_(request),
        options_(request.options),
        context_(request.context),
        program_(request.start, request.plan, request.solution,
                 [](const std::string&, const std::string&, const QuanterSetup& setup) {
                   return make_quanter(setup.is_weight ? "fixed" : "lsq", setup);
                 }),
        batches_(request.samples, {.batch = 1}, context_.seed),
        random_(context_.seed) {
    program_.train(false);
    program_.seed(context_.seed);
  }

  Result run() {
    const auto begin = Clock::now();
    const std::vector<Block> blocks = blocks_of(program_, options_.reconstruct ? kBlockLayers : 1);
    if (blocks.empty()) {
      fail(ErrorKind::Unsupported,
           "the model has no value that everything goes through, or no layer behind one: it cannot "
           "be "
           "reconstructed; train it with --epochs");
    }
    read_inputs(blocks.front().input);
    std::int64_t done = 0;
    for (const Block& block : blocks) {
      context_.check_cancelled();
      context_.report(format("reconstructing {}", block.output), done++,
                      static_cast<std::int64_t>(blocks.size()));
      if (done > 1) advance_to(block.input);
      learn(block);
    }
    learn_together();
    Result result{.model = program_.float_model(), .solution = program_.solution()};
    result.report.blocks = static_cast<std::int64_t>(blocks.size());
    result.report.samples = batches_.samples();
    result.report.score_name = request_.score;
    result.report.steps = options_.reconstruct_steps * result.report.blocks;
    result.report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return keep_better(std::move(result));
  }

 private:
  /// The values that the first block reads, from the samples.
  void read_inputs(const std::string& input) {
    const at::NoGradGuard no_gradients;
    for (std::int64_t at = 0; at < batches_.samples();) {
      const std::int64_t count = std::min(kRun, batches_.samples() - at);
      const TrainingBatch batch = batches_.plain(at, count);
      quantized_.add(compute(batch.feeds, input, true), count, batches_.samples(), at);
      plain_.add(compute(batch.feeds, input, false), count, batches_.samples(), at);
      at += count;
    }
  }

  at::Tensor compute(const Tensors& feeds, const std::string& wanted, bool quantizes) {
    const auto fed = feeds.find(wanted);
    if (fed != feeds.end() && !quantizes) return fed->second;
    program_.quantize(quantizes);
    at::Tensor value = program_.run(feeds, {wanted})[0];
    program_.quantize(true);
    return value;
  }

  /// From what the last block read to what this one reads.
  void advance_to(const std::string& input) {
    const at::NoGradGuard no_gradients;
    Cache quantized;
    Cache plain;
    for (std::int64_t at = 0; at < batches_.samples(); at += kRun) {
      const std::int64_t count = std::min(kRun, batches_.samples() - at);
      quantized.add(compute({{block_input_, quantized_.rows(at, count)}}, input, true), count,
                    batches_.samples(), at);
      plain.add(compute({{block_input_, plain_.rows(at, count)}}, input, false), count,
                batches_.samples(), at);
    }
    quantized_ = std::move(quantized);
    plain_ = std::move(plain);
  }

  void learn(const Block& block) {
    block_input_ = block.input;
    Cache target;
    for (std::int64_t at = 0; at < batches_.samples(); at += kRun) {
      const at::NoGradGuard no_gradients;
      const std::int64_t count = std::min(kRun, batches_.samples() - at);
      target.add(compute({{block.input, plain_.rows(at, count)}}, block.output, false), count,
                 batches_.samples(), at);
    }
    std::vector<AdaRound*> roundings;
    std::vector<Trained> learned;
    std::vector<Trained> others;
    for (const WeightKey& key : block.weights) {
      const at::Tensor weight = program_.leaf(program_.constant_of(key));
      auto rounding = std::make_unique<AdaRound>(program_.quanter_of(key)->params(), weight);
      roundings.push_back(rounding.get());
      learned.push_back(rounding->parameters()[0]);
      others.push_back(rounding->parameters()[1]);
      learned.back().rate = 1 / std::max(size_of(learned.back().tensor), 1e-9);
      program_.replace_quanter(key, std::move(rounding));
    }
    for (const at::Tensor& bias : program_.biases_of(block.weights)) {
      others.push_back({.name = "bias", .tensor = bias});
    }
    if (options_.reconstruct) {
      for (const std::string& value : program_.values_between({block.input}, {block.output})) {
        for (const Trained& each : program_.quanter_of(value)->parameters()) others.push_back(each);
      }
    }
    optimize(block, target, roundings, learned, others);
    for (AdaRound* rounding : roundings) rounding->harden();
  }

  void optimize(const Block& block, Cache& target, const std::vector<AdaRound*>& roundings,
                const std::vector<Trained>& learned, const std::vector<Trained>& others) {
    TrainingOptions rounding_options;
    rounding_options.optimizer = "adam";
    rounding_options.rate = kRoundingRate;
    rounding_options.warmup = 0;
    TrainingOptions other_options = rounding_options;
    other_options.rate = kOtherRate;
    Optimizer rounding_optimizer(learned, {}, rounding_options);
    std::optional<Optimizer> other_optimizer;
    if (!others.empty()) other_optimizer.emplace(others, std::vector<Trained>{}, other_options);
    const std::int64_t samples = batches_.samples();
    const std::int64_t batch =
        std::min({kBatch, samples, std::max(kLeastBatch, kMostElements / target.elements())});
    double first_error = 0;
    program_.drop(options_.reconstruct ? kDrop : 0);
    for (std::int64_t step = 0; step < options_.reconstruct_steps; ++step) {
      const double progress =
          static_cast<double>(step) / static_cast<double>(options_.reconstruct_steps);
      std::vector<std::int64_t> which;
      for (std::int64_t i = 0; i < batch; ++i) {
        which.push_back(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(samples)));
      }
      at::Tensor input = quantized_.pick(which);
      if (options_.reconstruct) {
        const at::Tensor plain = plain_.pick(which);
        input = at::where(program_.random_like(input) < kDrop, plain, input);
      }
      rounding_optimizer.zero_grad();
      if (other_optimizer) other_optimizer->zero_grad();
      const at::Tensor got = program_.run({{block.input, input}}, {block.output})[0];
      const at::Tensor error = at::mse_loss(got, target.pick(which));
      if (step == 0) first_error = std::max(error.item<double>(), 1e-30);
      at::Tensor loss = error / first_error;
      if (progress >= kSoft) {
        const double share = (progress - kSoft) / (1 - kSoft);
        const double sharpness = kSharpLast + (kSharpFirst - kSharpLast) *
                                                  (0.5 + 0.5 * std::cos(share * std::numbers::pi));
        at::Tensor push = at::zeros({});
        for (const AdaRound* rounding : roundings) push = push + rounding->undecided(sharpness);
        loss = loss + push * (kPush / static_cast<double>(roundings.size()));
      }
      loss.backward();
      rounding_optimizer.step_at(kRoundingRate);
      if (other_optimizer) other_optimizer->step(progress);
      if (step + 1 == options_.reconstruct_steps) {
        context_.info(format("{}: {} layers, error {:.3g} of that of rounding to the nearest",
                             block.output, block.weights.size(),
                             error.item<double>() / first_error));
      }
    }
    program_.drop(0);
  }

  /// With every weight's integer decided, scales and biases of all layers learn to give the float
  /// model's outputs: errors of blocks that lie behind each other are seen only here.
  void learn_together() {
    TrainingOptions options;
    options.optimizer = "adam";
    options.rate = kOtherRate;
    options.batch = std::min(kBatch, batches_.samples());
    std::vector<Trained> learned;
    for (const Trained& each : program_.quanter_parameters()) {
      if (each.tensor.requires_grad()) learned.push_back(each);
    }
    for (const Trained& each : program_.weights()) {
      if (each.tensor.dim() <= 1) learned.push_back(each);
    }
    Loss loss(request_, 0);
    Batches batches(request_.samples, options, context_.seed);
    Optimizer optimizer(learned, {}, options);
    for (std::int64_t step = 0; step < options_.reconstruct_steps; ++step) {
      context_.check_cancelled();
      const TrainingBatch batch = batches.at_step(step);
      optimizer.zero_grad();
      const at::Tensor error = loss.of(batch, program_.run(batch.feeds, loss.wanted()));
      error.backward();
      optimizer.step(static_cast<double>(step) / static_cast<double>(options_.reconstruct_steps));
      if (step % 100 == 0)
        context_.info(format("together, step {}: {:.3g}", step, error.item<double>()));
    }
  }

  /// The result, unless what it began with validates better.
  Result keep_better(Result result) {
    if (!request_.validate) return result;
    const double before = request_.validate(request_.start, request_.solution);
    const double after = request_.validate(result.model, result.solution);
    context_.info(format("reconstruction: validation {:.4g}, before {:.4g}", after, before));
    result.report.start_score = before;
    result.report.best_step = after > before ? result.report.steps : 0;
    if (after <= before) {
      result.model = request_.start;
      result.solution = request_.solution;
    }
    return result;
  }

  const Request& request_;
  const TrainingOptions& options_;
  const Context& context_;
  Program program_;
  Batches batches_;
  std::mt19937_64 random_;
  Cache quantized_;          ///< what the block reads, behind the blocks that are done
  Cache plain_;              ///< likewise in float
  std::string block_input_;  ///< what they are called
};

}  // namespace
}  // namespace quench::qat

extern "C" __attribute__((visibility("default"))) quench::qat::Result quench_engine_reconstruct(
    const quench::qat::Request& request) {
  quench::qat::expect_cpu(request.context);
  quench::exec::start_engine();
  const quench::qat::Threads threads(request.context.num_threads());
  return quench::qat::without_torch_errors(
      [&] { return quench::qat::Reconstruction(request).run(); });
}
