// SPDX-License-Identifier: Apache-2.0
// converter_lite's debug reports: every tensor of every node before and after quantisation.
#include "report/debug_info.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "evaluate/eval_data.h"
#include "evaluate/random_inputs.h"
#include "tune/weight_items.h"

namespace quench {
namespace {

using Fields = std::vector<std::string>;

std::string number(double value) { return format("{:.6g}", value); }

/// min, quartiles, max, mean, variance and share of zeros.
Fields summary_of(const std::vector<float>& values) {
  std::vector<float> sorted = values;
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double zeros = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    zeros += value == 0 ? 1 : 0;
  }
  double squares = 0;
  for (const float value : values) {
    squares += (static_cast<double>(value) - sum / n) * (static_cast<double>(value) - sum / n);
  }
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * n);
    return number(static_cast<double>(sorted[std::min(index, sorted.size() - 1)]));
  };
  return {number(static_cast<double>(sorted.front())),
          at(0.25),
          at(0.5),
          at(0.75),
          number(static_cast<double>(sorted.back())),
          number(sum / n),
          number(squares / n),
          number(zeros / n)};
}

double cosine_of(const std::vector<float>& a, const std::vector<float>& b) {
  constexpr double kNothing = 2.2e-16;
  double dot = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  if (aa < kNothing && bb < kNothing) return 1;
  const double cosine = aa * bb < kNothing ? 0 : dot / std::sqrt(aa * bb);
  return std::isfinite(cosine) ? cosine : 0;
}

/// The share of float values outside the range of the dequantised ones.
double clip_share(const std::vector<float>& real, const std::vector<float>& quantized) {
  const auto [low, high] = std::ranges::minmax(quantized);
  const float from = low;
  const float to = high;
  const auto outside =
      std::ranges::count_if(real, [&](float value) { return value < from || value > to; });
  return static_cast<double>(outside) / static_cast<double>(real.size());
}

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
  std::vector<float> get(const std::string& name) const {
    const Tensor* constant = model_.graph.constant(model_.graph.find(name));
    return to_float(constant != nullptr ? *constant : values_.at(name));
  }
  /// What the quantised model computes with.
  std::vector<float> get(const TensorPair& pair) const {
    if (pair.weight.defined()) return to_float(pair.weight);
    if (pair.parts.empty()) return get(pair.quantized_name);
    std::vector<float> numbers = get(pair.parts.at(0));
    const float scale = get(pair.parts.at(1)).at(0);
    const float zero = get(pair.parts.at(2)).at(0);
    for (float& each : numbers) each = (each - zero) * scale;
    return numbers;
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

std::string round_text(const std::vector<TensorPair>& pairs, const Values& real,
                       const Values& quantized) {
  std::string text = debug_line(kRoundHead);
  std::size_t index = 0;
  const auto add = [&](const TensorPair& pair, const char* kind, const std::vector<float>& values,
                       double clip, double cosine) {
    Fields fields = {format("{}", index++),
                     pair.node,
                     pair.op_type,
                     pair.tensor,
                     pair.is_input ? "Input" : "Output",
                     kind,
                     pair.is_weight ? "Weight" : "Activation"};
    const Fields numbers = summary_of(values);
    fields.insert(fields.end(), numbers.begin(), numbers.end());
    fields.push_back(number(clip));
    fields.push_back(number(cosine));
    text += debug_line(std::move(fields));
  };
  for (const TensorPair& pair : pairs) {
    const std::vector<float> after = quantized.get(pair);
    const std::vector<float> before = real.get(pair.float_name);
    if (after.empty() || before.size() != after.size()) continue;
    add(pair, "Origin", before, 0, 1);
    add(pair, "Dequant", after, clip_share(before, after), cosine_of(before, after));
  }
  return text;
}

std::string summary_text(std::size_t round, const Model& model, const Values& real,
                         const Values& quantized) {
  std::string text;
  for (const std::string& name : float_output_names(model.graph)) {
    text += debug_line(
        {format("{}", round), name, number(cosine_of(real.get(name), quantized.get(name)))});
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

DebugInfoOptions start_debug_info(const QuantizeOptions& options) {
  if (!options.debug_info_save_path.empty()) make_folder(options.debug_info_save_path);
  // Weights are the same in every round.
  return {.data = options.data,
          .input_shapes = options.input_shapes,
          .folder = options.debug_info_save_path,
          .rounds = in_place(options.type) ? 1 : 0,
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
  remove_old(folder, outputs);
  std::string summary = debug_line({"Round", "TensorName", "CosineSimilarity"});
  ParamFacts facts{.bits = bits.empty() ? noted_bits(quantized) : bits, .shapes = {}};
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const TensorMap inputs = rounds.inputs(round);
    before.run(inputs);
    after.run(inputs);
    if (round == 0) facts.shapes = after.shapes();
    write_text((folder / format("round_{}.csv", round)).string(), round_text(pairs, before, after),
               outputs);
    summary += summary_text(static_cast<std::size_t>(round), real, before, after);
    context.report("debug reports", round + 1, rounds.count());
  }
  write_text((folder / "output_summary.csv").string(), summary, outputs);
  write_text((folder / "quant_param.csv").string(),
             params_table(real.graph, quantized.graph, pairs, facts), outputs);
}

}  // namespace quench
