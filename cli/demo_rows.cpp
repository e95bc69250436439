// SPDX-License-Identifier: Apache-2.0
// Scores and times models on the same data, one row each, and others for their quantised forms.
#include "cli/demo_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "quench/error.h"
#include "quench/quantize.h"

namespace quench::cli {
namespace {

DemoRow score(const std::string& path, const DemoOptions& options, const Context& context) {
  DemoRow row{.model = path, .scores = {}, .timing = {}};
  row.bytes_on_disk = inspect(path).bytes_on_disk;
  const EvaluateResult scored = evaluate(path, options.evaluate, context);
  row.samples = scored.samples;
  row.scores = scored.outputs.front().scores;
  return row;
}

/// A quantised form of a model and what it is called.
struct Form {
  const char* suffix;
  void (*set)(QuantizeOptions& how);
};

/// Of each block: a few seconds of the demo's network.
constexpr std::int64_t kSteps = 200;

constexpr std::array<Form, 5> kForms = {{
    {"_int8", [](QuantizeOptions&) {}},
    {"_4bit",
     [](QuantizeOptions& how) {
       how.type = QuantType::Weight;
       how.weight.bits = 4;
     }},
    {"_mixed",
     [](QuantizeOptions& how) {
       how.type = QuantType::Weight;
       how.weight.bits = 0;
       how.weight.auto_tune = true;
     }},
    {"_dynamic", [](QuantizeOptions& how) { how.type = QuantType::Dynamic; }},
    {"_2bit_trained",
     [](QuantizeOptions& how) {
       how.config.global.weight_bits = 2;
       how.training.reconstruct = true;  // 200 samples say how to round, not where to move weights
       how.training.reconstruct_steps = kSteps;
     }},
}};

/// Writes `<folder>/<name><suffix>.onnx` and returns its path.
std::string quantize_into(const std::string& path, const Form& form, const DemoOptions& options,
                          std::int64_t samples, const Context& context) {
  const std::filesystem::path folder = options.int8_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorKind::Io,
                fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  }
  const std::string name = std::filesystem::path(path).stem().string() + form.suffix + ".onnx";
  std::string out = (folder / name).string();
  QuantizeOptions how;
  how.data = options.evaluate.data;
  how.data.limit = std::min(samples, options.calibration_samples);
  form.set(how);
  quantize(path, out, how, context);
  return out;
}

/// A row for a form; nothing where the model has no layer of the kind it is for.
std::optional<DemoRow> form_row(const std::string& path, const Form& form,
                                const DemoOptions& options, std::int64_t samples,
                                const Context& context) {
  std::string made;
  try {
    made = quantize_into(path, form, options, samples, context);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported) return std::nullopt;
    throw;
  }
  DemoRow row = score(made, options, context);
  row.timing = bench(made, options.bench, context);
  return row;
}

}  // namespace

std::vector<DemoRow> demo_rows(const DemoOptions& options, const Context& context) {
  std::vector<DemoRow> rows;
  for (const std::string& path : options.models) {
    DemoRow row = score(path, options, context);
    row.timing = bench(path, options.bench, context);
    const std::int64_t samples = row.samples;
    rows.push_back(std::move(row));
    if (options.int8_folder.empty()) continue;
    for (const Form& form : kForms) {
      if (auto made = form_row(path, form, options, samples, context))
        rows.push_back(std::move(*made));
    }
  }
  return rows;
}

}  // namespace quench::cli
