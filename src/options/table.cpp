// SPDX-License-Identifier: Apache-2.0
// Reads fields.inc and quench/options.inc, the table, and answers what the table alone knows.
#include <algorithm>

#include "options/row.h"
#include "quench/plan.h"
#include "quench/presets.h"

namespace quench {
namespace options {
namespace {

bool full(const QuantizeOptions& options) { return options.type == QuantType::Full; }
bool weight(const QuantizeOptions& options) { return options.type == QuantType::Weight; }
bool dynamic(const QuantizeOptions& options) { return options.type == QuantType::Dynamic; }
bool not_dynamic(const QuantizeOptions& options) { return !dynamic(options); }
bool corrected(const QuantizeOptions& options) { return full(options) && options.bias_correction; }
bool by_channel(const QuantizeOptions& options) {
  return weight(options) || (full(options) && find_target(options.config.target).per_channel);
}
bool mixed(const QuantizeOptions& options) { return weight(options) && options.weight.bits == 0; }
bool mixed_not_sized(const QuantizeOptions& options) {
  return mixed(options) && options.weight.size_target == 0;
}
bool tuned(const QuantizeOptions& options) {
  return mixed_not_sized(options) && options.weight.auto_tune;
}
bool by_error(const QuantizeOptions& options) {
  return mixed_not_sized(options) && !tuned(options);
}
bool reconstructed(const QuantizeOptions& options) {
  return options.training.adaround || options.training.reconstruct;
}
bool debugged(const QuantizeOptions& options) { return !options.debug_info_save_path.empty(); }
bool learned(const QuantizeOptions& options) {
  return reconstructed(options) || options.training.any();
}
bool by_sgd(const QuantizeOptions& options) { return options.training.optimizer == "sgd"; }

constexpr OptionScope kFull = {full, "--type full"};
constexpr OptionScope kCorrected = {corrected, "--type full with bias correction"};
constexpr OptionScope kNotDynamic = {not_dynamic, "--type full and --type weight"};
constexpr OptionScope kByChannel = {
    by_channel, "--type weight, and --type full for targets that scale channels"};
constexpr OptionScope kBits = {weight, "--type weight (--weight-bits is for --type full)"};
constexpr OptionScope kWeight = {weight, "--type weight"};
constexpr OptionScope kMixed = {mixed, "--type weight --bits 0"};
constexpr OptionScope kNotSized = {mixed_not_sized, "--type weight --bits 0 without --target-size"};
constexpr OptionScope kTuned = {tuned, "--type weight --bits 0 --auto-tune"};
constexpr OptionScope kByError = {by_error,
                                  "--type weight --bits 0 without --auto-tune and --target-size"};
constexpr OptionScope kDynamic = {dynamic, "--type dynamic"};
constexpr OptionScope kReconstructed = {reconstructed, "--adaround and --reconstruct"};
constexpr OptionScope kDebugged = {debugged, "--debug-info"};
constexpr OptionScope kLearned = {learned, "training, --adaround and --reconstruct"};
constexpr OptionScope kBySgd = {by_sgd, "--optimizer sgd"};

constexpr unsigned kAll = kForQuantize | kForCalibrate | kForAnalyze | kForTrain;
constexpr unsigned kModel = kForQuantize | kForAnalyze | kForTrain;
constexpr unsigned kData = kAll | kForSamples;

constexpr std::string_view kLayers = "Which layers are quantised";
constexpr std::string_view kRanges = "Ranges and bits";
constexpr std::string_view kTuning = "Accuracy";
constexpr std::string_view kTraining = "Training";
constexpr std::string_view kWeights = "Weights only (--type weight)";
constexpr std::string_view kDynamics = "Dynamic (--type dynamic)";
constexpr std::string_view kSamples = "Samples";
constexpr std::string_view kImages = "Images";

/// One way to resize replaces the others.
void forget_sizes(QuantizeOptions& options) {
  options.data.image.resize.reset();
  options.data.image.resize_fit.reset();
  options.data.image.resize_shorter.reset();
}

struct Table {
  std::vector<Option> options;
  std::vector<Row> rows;

  /// An option that is a member of the options.
  template <typename Member>
  void field(std::string_view place, Member member, Option option) {
    using T = std::remove_cvref_t<decltype(member(std::declval<QuantizeOptions&>()))>;
    using Read = Value<T>;
    option.kind = Read::kKind;
    option.many = option.kind == OptionKind::List || option.kind == OptionKind::Shapes;
    option.setting = place;
    if (option.name.empty()) option.name = place;
    if constexpr (std::is_enum_v<T>) {
      if (option.choices.empty()) option.choices = {kWords<T>.begin(), kWords<T>.end()};
    }
    const bool size = option.one_of == "resize";
    const std::size_t at = options.size();
    options.push_back(std::move(option));
    rows.push_back(
        {.set =
             [member, at, size](QuantizeOptions& all, const Words& words) {
               T value = Read::parse(all_options()[at], words);
               if (size) forget_sizes(all);
               member(all) = std::move(value);
             },
         .print = [member](QuantizeOptions& all) { return Read::print(member(all)); },
         .encode = [member](QuantizeOptions& all) { return Encoder::encode(member(all)); },
         .decode = [member](
                       QuantizeOptions& all, const Json& json,
                       const std::string& where) { Decoder::decode(json, member(all), where); }});
  }
  /// A member that is not stored.
  template <typename Member>
  void transient(Member member, Option option) {
    field("", member, std::move(option));
  }
  /// Another way to say what members hold.
  void alias(Option option, std::function<void(QuantizeOptions&, const Words&)> set,
             std::function<std::string(QuantizeOptions&)> print = {}) {
    option.alias = true;
    option.kind = option.value.empty()     ? OptionKind::Switch
                  : option.choices.empty() ? OptionKind::Text
                                           : OptionKind::Word;
    options.push_back(std::move(option));
    rows.push_back({.set = std::move(set), .print = std::move(print)});
  }
};

/// none, or a kind of correction.
void correct_bias(QuantizeOptions& options, const std::string& kind) {
  options.bias_correction = kind != "none";
  options.weight.bias_correction = options.bias_correction;
  const auto at = std::ranges::find(kWords<BiasCorrection>, kind) - kWords<BiasCorrection>.begin();
  if (options.bias_correction) options.correction = static_cast<BiasCorrection>(at);
}

const std::string& chosen(std::string_view name, const Words& words) {
  const Option& option = find_option(name);
  return option.choices[choice_of(option, only_word(option, words))];
}

const Table& table() {
  static const Table all = [] {
    Table made;
    static const std::string kPlanBits = std::to_string(QuantSpec{}.bits);
#define QUENCH_MEMBER(member) \
  [](QuantizeOptions & options) -> auto& { return options.member; }
#define QUENCH_FIELD(member, ...) made.field(#member, QUENCH_MEMBER(member), Option{__VA_ARGS__});
#define QUENCH_OPTION(type, member, value, ...) QUENCH_FIELD(member, __VA_ARGS__)
#define QUENCH_TRANSIENT(member, ...) made.transient(QUENCH_MEMBER(member), Option{__VA_ARGS__});
#define QUENCH_ALIAS(...) made.alias(__VA_ARGS__);
#include "options/fields.inc"
#include "quench/options.inc"
#undef QUENCH_ALIAS
#undef QUENCH_TRANSIENT
#undef QUENCH_OPTION
#undef QUENCH_FIELD
#undef QUENCH_MEMBER
    return made;
  }();
  return all;
}

const char* name_of(QuantType type) {
  return type == QuantType::Weight ? "weight" : type == QuantType::Dynamic ? "dynamic" : "full";
}

}  // namespace

const std::vector<Row>& all_rows() { return table().rows; }

std::optional<std::size_t> find_row(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  const auto same = [&](const Option& option) {
    return option.name == name || option.name == dashed;
  };
  const auto found = std::ranges::find_if(all_options(), same);
  if (found == all_options().end()) return std::nullopt;
  return static_cast<std::size_t>(found - all_options().begin());
}

}  // namespace options

const std::vector<Option>& all_options() { return options::table().options; }

namespace {

std::size_t row_called(std::string_view name) {
  if (const auto row = options::find_row(name)) return *row;
  std::vector<std::string> names;
  for (const Option& option : all_options()) names.emplace_back(option.name);
  fail(ErrorKind::Usage, "there is no option '{}'{}", name, did_you_mean(name, names));
}

}  // namespace

const Option& find_option(std::string_view name) { return all_options()[row_called(name)]; }

void set_option(QuantizeOptions& options, std::string_view name,
                const std::vector<std::string>& words) {
  quench::options::all_rows()[row_called(name)].set(options, words);
}

std::string option_text(const QuantizeOptions& options, std::string_view name) {
  const std::size_t at = row_called(name);
  const auto& print = quench::options::all_rows()[at].print;
  QuantizeOptions shown = options;
  const std::string text = print ? print(shown) : "";
  return text.empty() ? std::string(all_options()[at].by_default) : text;
}

void refuse_idle_options(const std::vector<std::string_view>& given,
                         const QuantizeOptions& options) {
  for (const std::string_view name : given) {
    const Option& option = find_option(name);
    if (option.scope.counts == nullptr || option.scope.counts(options)) continue;
    fail(ErrorKind::Usage, "--{} would change nothing here: it is for {}, and this is --type {}",
         name, option.scope.words, quench::options::name_of(options.type));
  }
}

}  // namespace quench
