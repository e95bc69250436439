// SPDX-License-Identifier: Apache-2.0
// Reconstruction (AdaRound; BRECQ, Li et al., 2021; QDrop, Wei et al., 2022): block by block, the
// rounding of weights, biases and the scales of activations learn to give what the float block
// gives. Inputs of a block are kept from the one before it.
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
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
constexpr std::int64_t kLeastBatch = 4;          ///< where they are large: each has many places
constexpr std::int64_t kMostElements = 1 << 20;  ///< of what a step reads or gives
constexpr std::int64_t kMostStored = 1 << 27;    ///< of all values of a step through the model
constexpr double kSoft = 0.2;                    ///< share of the steps in which rounding is free
constexpr double kSharpFirst = 20;               ///< of the push towards a decision
constexpr double kSharpLast = 2;
/// Its weight beside the relative error, and how far a rounding may go in all its steps. Where
/// these leave weights between two integers, what was learned is lost when they are rounded: with 1
/// and 20 that was 1 to 2 % of them, and cost 4 dB behind the blocks of ResNet8 with 3 bits.
constexpr double kPush = 30;
constexpr double kTravel = 80;
constexpr double kMostRate = 0.4;
constexpr double kOtherRate = 1e-3;  ///< of scales and biases, relative to their size
/// Likewise of all layers together: at a higher rate they unlearn what the blocks have learned.
constexpr double kTogetherRate = 1e-4;
constexpr double kDrop = 0.5;  ///< share of activations that a step leaves in float
constexpr std::size_t kBlockLayers = 3;
/// Samples that a block learns from, if need be copies of images that are changed by chance.
constexpr std::int64_t kEnough = 1600;
constexpr std::int64_t kMostKept = 1 << 28;  ///< elements of a value that a block reads or gives
constexpr std::int64_t kBlockSteps = 2;  ///< of a block, for each that all layers learn together

class Reconstruction {
 public:
  explicit Reconstruction(const Request& request)
      : request_(request),
        options_(request.options),
        context_(request.context),
        program_(
            request.start, request.plan, request.solution,
            [](const std::string&, const std::string&, const QuanterSetup& setup) {
              return make_quanter(setup.is_weight ? "fixed" : "lsq", setup);
            },
            training_place(context_)),
        batches_(request.samples, one_by_one(options_), context_.seed),
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
           "be reconstructed; train it with --epochs");
    }
    steps_ = options_.reconstruct_steps * static_cast<std::int64_t>(blocks.size());
    begin_validation();
    read_inputs(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      learn(blocks[i]);
      if (i + 1 < blocks.size()) advance(blocks[i]);
    }
    keep_if_better("blocks");
    for (Cache* cache : {&quantized_, &plain_, &target_}) *cache = Cache();
    learn_together();
    keep_if_better("all layers together");
    result_.report.blocks = static_cast<std::int64_t>(blocks.size());
    result_.report.samples = batches_.samples();
    result_.report.score_name = request_.score;
    result_.report.steps = done_;
    result_.report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  static TrainingOptions one_by_one(TrainingOptions options) {
    options.batch = 1;
    return options;
  }

  /// The values that the first block reads: of the samples and, where images may be changed by
  /// chance and are few, of changed copies.
  void read_inputs(const std::vector<Block>& blocks) {
    const at::NoGradGuard no_gradients;
    const std::string& input = blocks.front().input;
    const std::int64_t samples = batches_.samples();
    std::vector<std::string> kept = {input};
    for (const Block& block : blocks) kept.push_back(block.output);
    const std::int64_t fit = kMostKept / (samples * std::ranges::max(elements_of(kept)));
    const std::int64_t wanted = std::min(fit, (kEnough + samples - 1) / samples);
    const std::int64_t copies = batches_.variants(std::max<std::int64_t>(1, wanted));
    rows_ = copies * samples;
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      for (std::int64_t at = 0; at < samples; at += kRun) {
        const std::int64_t count = std::min(kRun, samples - at);
        const TrainingBatch batch =
            copy == 0 ? batches_.plain(at, count) : batches_.varied(copy, at, count);
        const std::int64_t first = copy * samples + at;
        quantized_.add(compute(batch.feeds, input, true), count, rows_, first);
        plain_.add(compute(batch.feeds, input, false), count, rows_, first);
      }
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

  /// From what this block reads to what the next one does: this one's results.
  void advance(const Block& block) {
    const at::NoGradGuard no_gradients;
    Cache next;
    for (std::int64_t at = 0; at < rows_; at += kRun) {
      const std::int64_t count = std::min(kRun, rows_ - at);
      next.add(compute({{block.input, quantized_.rows(at, count)}}, block.output, true), count,
               rows_, at);
    }
    quantized_ = std::move(next);
    plain_ = std::move(target_);
  }

  void find_target(const Block& block) {
    const at::NoGradGuard no_gradients;
    target_ = Cache();
    for (std::int64_t at = 0; at < rows_; at += kRun) {
      const std::int64_t count = std::min(kRun, rows_ - at);
      target_.add(compute({{block.input, plain_.rows(at, count)}}, block.output, false), count,
                  rows_, at);
    }
  }

  void learn(const Block& block) {
    find_target(block);
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
    optimize(block, roundings, learned, others);
    for (AdaRound* rounding : roundings) rounding->harden();
  }

  /// Of a step of this block. Large values have many places each: fewer samples will do.
  std::vector<std::int64_t> some_samples() {
    const std::int64_t fit = kMostElements / std::max(quantized_.elements(), target_.elements());
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < std::min({kBatch, rows_, std::max(kLeastBatch, fit)}); ++i) {
      which.push_back(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(rows_)));
    }
    return which;
  }

  /// Towards a decision for every weight, harder as `share` goes from 0 to 1.
  static at::Tensor push(const std::vector<AdaRound*>& roundings, double share) {
    const double sharpness =
        kSharpLast + (kSharpFirst - kSharpLast) * (0.5 + 0.5 * std::cos(share * std::numbers::pi));
    at::Tensor sum = at::zeros({});
    for (const AdaRound* rounding : roundings) sum = sum + rounding->undecided(sharpness);
    return sum * (kPush / static_cast<double>(roundings.size()));
  }

  void begin_step(const std::string& phase) {
    context_.check_cancelled();
    context_.report(phase, done_++, steps_ + steps_of_all());
  }

  void optimize(const Block& block, const std::vector<AdaRound*>& roundings,
                const std::vector<Trained>& learned, const std::vector<Trained>& others) {
    TrainingOptions rounding_options;
    rounding_options.optimizer = "adam";
    rounding_options.rate =
        std::min(kTravel / static_cast<double>(options_.reconstruct_steps), kMostRate);
    rounding_options.warmup = 0;
    TrainingOptions other_options = rounding_options;
    other_options.rate = kOtherRate;
    const std::int64_t samples = batches_.samples();
    Optimizer rounding_optimizer(learned, {}, rounding_options, samples);
    std::optional<Optimizer> other_optimizer;
    if (!others.empty())
      other_optimizer.emplace(others, std::vector<Trained>{}, other_options, samples);
    double first_error = 0;
    program_.drop(options_.reconstruct ? kDrop : 0);
    for (Cache* cache : {&quantized_, &target_}) cache->keep_at(program_.place());
    for (std::int64_t step = 0; step < options_.reconstruct_steps; ++step) {
      begin_step("reconstructing " + block.output);
      const double progress =
          static_cast<double>(step) / static_cast<double>(options_.reconstruct_steps);
      const std::vector<std::int64_t> which = some_samples();
      rounding_optimizer.zero_grad();
      if (other_optimizer) other_optimizer->zero_grad();
      // What the written model will feed it, not the float values: so it makes up for the errors
      // of the blocks before it.
      const at::Tensor input = quantized_.pick(which);
      const at::Tensor got = program_.run({{block.input, input}}, {block.output})[0];
      const at::Tensor error = at::mse_loss(got, target_.pick(which).to(got.device()));
      if (step == 0) first_error = std::max(error.item<double>(), 1e-30);
      at::Tensor loss = error / first_error;
      if (progress >= kSoft) loss = loss + push(roundings, (progress - kSoft) / (1 - kSoft));
      loss.backward();
      rounding_optimizer.step_at(rounding_options.rate);
      if (other_optimizer) other_optimizer->step(progress);
      if (step + 1 == options_.reconstruct_steps) {
        context_.info(format("{}: {} layers, error {:.3g} of that with weights not yet rounded",
                             block.output, block.weights.size(),
                             error.item<double>() / first_error));
      }
    }
    program_.drop(0);
    for (Cache* cache : {&quantized_, &target_}) cache->leave();
  }

  /// How many elements each of these values of one sample has.
  std::vector<std::int64_t> elements_of(const std::vector<std::string>& values) {
    const at::NoGradGuard no_gradients;
    std::vector<std::int64_t> elements;
    for (const at::Tensor& value : program_.run(batches_.plain(0, 1).feeds, values)) {
      elements.push_back(value.defined() ? std::max<std::int64_t>(1, value.numel()) : 1);
    }
    return elements;
  }

  /// How many samples can go through the whole model with everything kept for gradients.
  std::int64_t batch_of_all() {
    std::vector<std::string> all;
    for (const Node& node : program_.graph().nodes) {
      const std::string name = output_name(program_.graph(), node);
      if (!name.empty()) all.push_back(name);
    }
    const std::vector<std::int64_t> each = elements_of(all);
    const std::int64_t elements = std::accumulate(each.begin(), each.end(), std::int64_t{1});
    const auto ceiling = static_cast<std::int64_t>(memory_ceiling(context_));
    const std::int64_t most = ceiling > 0 ? std::min(kMostStored, ceiling / 16) : kMostStored;
    return std::clamp<std::int64_t>(most / elements, 1, std::min(kBatch, batches_.samples()));
  }

  std::int64_t steps_of_all() const {
    return std::max<std::int64_t>(1, options_.reconstruct_steps / kBlockSteps);
  }

  /// With every weight's integer decided, scales and biases of all layers learn to give the float
  /// model's outputs: errors of blocks that lie behind each other are seen only here.
  void learn_together() {
    TrainingOptions options = options_;
    options.optimizer = "adam";
    options.rate = kTogetherRate;
    options.batch = batch_of_all();
    std::vector<Trained> learned;
    for (const Trained& each : program_.quanter_parameters()) {
      if (each.tensor.requires_grad()) learned.push_back(each);
    }
    for (const Trained& each : program_.weights()) {
      if (each.tensor.dim() <= 1) learned.push_back(each);
    }
    Loss loss(request_, 0);
    Batches batches(request_.samples, options, context_.seed);
    Optimizer optimizer(learned, {}, options, batches_.samples());
    const std::int64_t steps = steps_of_all();
    for (std::int64_t step = 0; step < steps; ++step) {
      begin_step("all layers together");
      const TrainingBatch batch = batches.at_step(step);
      optimizer.zero_grad();
      const at::Tensor error = loss.of(batch, program_.run(batch.feeds, loss.wanted()));
      error.backward();
      optimizer.step(static_cast<double>(step) / static_cast<double>(steps));
      if (step % 100 == 0)
        context_.info(format("together, step {}: {:.3g}", step, error.item<double>()));
    }
  }

  void begin_validation() {
    result_.model = request_.start;
    result_.solution = request_.solution;
    if (!request_.validate) return;
    best_ = request_.validate(request_.start, request_.solution);
    result_.report.start_score = best_;
  }

  /// What is learned so far becomes the result, unless an earlier one validates better.
  void keep_if_better(const std::string& what) {
    Model model = program_.float_model();
    QuantSolution solution = program_.solution();
    if (request_.validate) {
      const double score = request_.validate(model, solution);
      context_.info(format("{}: validation {:.4g}, best before {:.4g}", what, score, best_));
      if (score <= best_) return;
      best_ = score;
    }
    result_.model = std::move(model);
    result_.solution = std::move(solution);
    result_.report.best_step = done_;
  }

  const Request& request_;
  const TrainingOptions& options_;
  const Context& context_;
  Program program_;
  Batches batches_;
  std::mt19937_64 random_;
  std::int64_t rows_ = 0;   ///< of the caches: samples and their copies
  Cache quantized_;         ///< what the block reads, behind the blocks that are done
  Cache plain_;             ///< likewise in float
  Cache target_;            ///< what the float block makes of that
  Result result_;           ///< the best so far
  double best_ = 0;         ///< its validation score
  std::int64_t steps_ = 0;  ///< of all blocks
  std::int64_t done_ = 0;
};

}  // namespace
}  // namespace quench::qat

extern "C" __attribute__((visibility("default"))) quench::qat::Result quench_engine_reconstruct(
    const quench::qat::Request& request) {
  quench::exec::start_engine();
  const quench::qat::Threads threads(request.context.num_threads());
  return quench::qat::without_torch_errors(
      request.context, [&] { return quench::qat::Reconstruction(request).run(); });
}
