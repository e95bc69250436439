// SPDX-License-Identifier: Apache-2.0
// converter_lite's debug reports: every tensor of every node before and after quantisation.
#include "report/debug_info.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "base/parallel.h"
#include "evaluate/eval_data.h"
#include "evaluate/random_inputs.h"
#include "report/tensor_summary.h"
#include "tune/weight_items.h"

namespace quench {
namespace {

using Fields = std::vector<std::string>;
using report::TensorDistance;
using report::TensorSummary;

std::string number(double value) { return format("{:.6g}", value); }

Fields to_fields(const TensorSummary& summary) {
  return {number(summary.min),      number(summary.q1),   number(summary.median),
          number(summary.q3),       number(summary.max),  number(summary.mean),
          number(summary.variance), number(summary.zeros)};
}

/// A tensor as floats: where it lies, if it holds them.
class Floats {
 public:
  explicit Floats(const Tensor& tensor) : tensor_(tensor.held()) {
    if (tensor_.dtype() != DType::Float32) made_ = to_float(tensor_);
  }
  explicit Floats(std::vector<float> values) : made_(std::move(values)) {}
  std::span<const float> values() const {
    return tensor_.defined() && tensor_.dtype() == DType::Float32 ? tensor_.data<float>()
                                                                  : std::span<const float>(made_);
  }

 private:
  Tensor tensor_;
  std::vector<float> made_;
};

/// A model whose every needed value can be asked for.
class Values {
 public:
  Values(const Model& model, const std::vector<std::string>& names, const Context& context)
      : model_(model) {
    SessionOptions options;
    for (const std::string& name : names) {
      const ValueId id = name.empty() ? kNoValue : model.graph.find(name);
      if (id == kNoValue || model.graph.constant(id) != nullptr) continue;
      if (std::ranges::find(options.taps, name) == options.taps.end()) options.taps.push_back(name);
    }
    taps_ = options.taps;
    session_ = std::make_unique<Session>(model, options, context);
  }
  void run(const TensorMap& inputs) {
    std::vector<std::string> wanted;
    for (const std::string& name : taps_) {
      if (!inputs.contains(name)) wanted.push_back(name);
    }
    values_ = session_->run(inputs, wanted);
    values_.insert(inputs.begin(), inputs.end());
  }
  Floats get(const std::string& name) const {
    const Tensor* constant = model_.graph.constant(model_.graph.find(name));
    return Floats(constant != nullptr ? *constant : values_.at(name));
  }
  /// What the quantised model computes with.
  Floats get(const TensorPair& pair) const {
    if (pair.weight.defined()) return Floats(pair.weight);
    if (pair.parts.empty()) return get(pair.quantized_name);
    const auto part = [&](std::size_t index) { return get(pair.parts.at(index)); };
    const Floats integers = part(0);
    std::vector<float> numbers(integers.values().begin(), integers.values().end());
    const float scale = part(1).values()[0];
    const float zero = part(2).values()[0];
    for (float& each : numbers) each = (each - zero) * scale;
    return Floats(std::move(numbers));
  }
  std::map<std::string, Shape> shapes() const {
    std::map<std::string, Shape> result;
    for (const auto& [name, tensor] : values_) result[name] = tensor.shape();
    return result;
  }

 private:
  const Model& model_;
  std::vector<std::string> taps_;
  std::unique_ptr<Session> session_;
  TensorMap values_;
};

const Fields kRoundHead = {"",
                           "NodeName",
                           "NodeType",
                           "TensorName",
                           "InOutFlag",
                           "DataTypeFlag",
                           "TensorTypeFlag",
                           "Min",
                           "Q1",
                           "Median",
                           "Q3",
                           "Max",
                           "Mean",
                           "Var",
                           "Sparsity",
                           "Clip",
                           "CosineSimilarity"};

/// The figures of a pair of tensors.
struct PairNumbers {
  TensorSummary before;
  TensorSummary after;
  TensorDistance distance;
  bool comparable = false;
};

/// The figures of all pairs, round by round. What one node makes and another reads is looked at
/// once, and weights only in the first round.
class Comparison {
 public:
  Comparison(const std::vector<TensorPair>& pairs, const Values& real, const Values& quantized,
             int threads)
      : pairs_(pairs), real_(real), quantized_(quantized), threads_(threads) {
    std::map<std::string, std::size_t> known;
    for (const TensorPair& pair : pairs) {
      const std::string parts = pair.parts.empty() ? pair.quantized_name : pair.parts[0];
      const std::string key = pair.weight.defined() ? format("{} {}", pair.node, pair.float_name)
                                                    : format("{} {}", pair.float_name, parts);
      const auto [found, fresh] = known.emplace(key, first_.size());
      if (fresh) first_.push_back(&pair);
      place_.push_back(found->second);
    }
    numbers_.resize(first_.size());
  }

  void look(bool first_round) {
    parallel_for(static_cast<std::int64_t>(first_.size()), threads_,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const TensorPair& pair = *first_[static_cast<std::size_t>(i)];
                     if (!first_round && pair.is_weight) continue;
                     numbers_[static_cast<std::size_t>(i)] = numbers_of(pair);
                   }
                 });
  }

  std::string text() const {
    std::string text = debug_line(kRoundHead);
    std::size_t index = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const PairNumbers& numbers = numbers_[place_[i]];
      if (!numbers.comparable) continue;
      text += line(index++, pairs_[i], "Origin", numbers.before, {});
      text += line(index++, pairs_[i], "Dequant", numbers.after, numbers.distance);
    }
    return text;
  }

 private:
  PairNumbers numbers_of(const TensorPair& pair) const {
    const Floats after = quantized_.get(pair);
    const Floats before = real_.get(pair.float_name);
    PairNumbers numbers;
    if (after.values().empty() || before.values().size() != after.values().size()) return numbers;
    numbers.comparable = true;
    numbers.before = report::summary_of(before.values());
    numbers.after = report::summary_of(after.values());
    numbers.distance = report::distance_of(before.values(), after.values(), numbers.after);
    return numbers;
  }

  static std::string line(std::size_t index, const TensorPair& pair, const char* kind,
                          const TensorSummary& summary, const TensorDistance& distance) {
    Fields fields = {format("{}", index),
                     pair.node,
                     pair.op_type,
                     pair.tensor,
                     pair.is_input ? "Input" : "Output",
                     kind,
                     pair.is_weight ? "Weight" : "Activation"};
    const Fields numbers = to_fields(summary);
    fields.insert(fields.end(), numbers.begin(), numbers.end());
    fields.push_back(number(distance.clipped));
    fields.push_back(number(distance.cosine));
    return debug_line(std::move(fields));
  }

  const std::vector<TensorPair>& pairs_;
  const Values& real_;
  const Values& quantized_;
  int threads_;
  std::vector<const TensorPair*> first_;  ///< one of those that are alike
  std::vector<std::size_t> place_;        ///< of each pair in these
  std::vector<PairNumbers> numbers_;
};

std::string summary_text(std::size_t round, const Model& model, const Values& real,
                         const Values& quantized) {
  std::string text;
  for (const std::string& name : float_output_names(model.graph)) {
    const Floats before = real.get(name);
    const Floats after = quantized.get(name);
    const bool alike = !before.values().empty() && before.values().size() == after.values().size();
    const double cosine =
        alike ? report::distance_of(before.values(), after.values(), {}).cosine : 0;
    text += debug_line({format("{}", round), name, number(cosine)});
  }
  return text;
}

/// What a run before left: rounds that this one may not have.
void remove_old(const std::filesystem::path& folder, Outputs& outputs) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("round_") && name.ends_with(".csv")) outputs.removes(entry.path());
  }
}

/// The samples one by one; without data a single one at random.
class Rounds {
 public:
  Rounds(const Graph& graph, const DebugInfoOptions& options, const Context& context)
      : inputs_(required_inputs(graph)), seed_(context.seed) {
    if (!options.data.path.empty()) {
      data_.emplace(open_data(options.data, inputs_, context), inputs_, 1, context);
    }
    const std::int64_t all = data_ ? data_->batches() : 1;
    count_ = options.rounds > 0 ? std::min(options.rounds, all) : all;
  }
  std::int64_t count() const noexcept { return count_; }
  TensorMap inputs(std::int64_t round) {
    if (data_) return data_->batch(round)->inputs;
    std::mt19937_64 generator(seed_);
    return random_feeds(inputs_, resolve_shapes(inputs_, {}, 1), generator);
  }

 private:
  std::vector<Value> inputs_;
  std::uint64_t seed_;
  std::optional<evaluation::EvalData> data_;
  std::int64_t count_ = 0;
};

/// Whether only weights were replaced: every node is still there.
bool in_place(QuantType type) { return type == QuantType::Weight || type == QuantType::Dynamic; }

}  // namespace

DebugInfoOptions debug_info_of(const QuantizeOptions& options) {
  // Weights are the same in every round.
  const std::int64_t few = in_place(options.type) ? 1 : 0;
  return {.data = options.data,
          .input_shapes = options.input_shapes,
          .folder = options.debug_info_save_path,
          .rounds = options.debug_samples > 0 ? options.debug_samples : few,
          .type = options.type};
}

void write_debug_tables(const Model& real, Model quantized, const DebugInfoOptions& options,
                        const Context& context, Outputs& outputs, const ParamBits& bits) {
  make_folder(options.folder);
  const std::filesystem::path folder(options.folder);
  infer_types(quantized);
  const std::vector<TensorPair> pairs = find_pairs(real.graph, quantized.graph);
  std::vector<std::string> float_names = float_output_names(real.graph);
  std::vector<std::string> quantized_names = float_names;
  for (const TensorPair& pair : pairs) {
    float_names.push_back(pair.float_name);
    quantized_names.push_back(pair.quantized_name);
    quantized_names.insert(quantized_names.end(), pair.parts.begin(), pair.parts.end());
  }
  Values before(real, float_names, context);
  Values after(quantized, quantized_names, context);
  Rounds rounds(real.graph, options, context);
  Comparison comparison(pairs, before, after, context.num_threads());
  remove_old(folder, outputs);
  std::string summary = debug_line({"Round", "TensorName", "CosineSimilarity"});
  ParamFacts facts{.bits = bits.empty() ? noted_bits(quantized) : bits, .shapes = {}};
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const TensorMap inputs = rounds.inputs(round);
    before.run(inputs);
    after.run(inputs);
    if (round == 0) facts.shapes = after.shapes();
    comparison.look(round == 0);
    write_text((folder / format("round_{}.csv", round)).string(), comparison.text(), outputs);
    summary += summary_text(static_cast<std::size_t>(round), real, before, after);
    context.report("debug reports", round + 1, rounds.count());
  }
  write_text((folder / "output_summary.csv").string(), summary, outputs);
  write_text((folder / "quant_param.csv").string(),
             params_table(real.graph, quantized.graph, pairs, facts), outputs);
}

}  // namespace quench
