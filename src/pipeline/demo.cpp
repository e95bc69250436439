// SPDX-License-Identifier: Apache-2.0
// Scores and times models on the same data, one row each, and another for the 8-bit form.
#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "quench/quantize.h"

namespace quench {
namespace {

DemoRow score(const std::string& path, const DemoOptions& options, const Context& context) {
  DemoRow row{.model = path, .scores = {}, .timing = {}};
  row.bytes_on_disk = inspect(path).bytes_on_disk;
  const EvaluateResult scored = evaluate(path, options.evaluate, context);
  row.samples = scored.samples;
  row.scores = scored.outputs.front().scores;
  return row;
}

/// Writes `<folder>/<name>_int8.onnx` and returns its path.
std::string quantize_into(const std::string& folder, const std::string& path,
                          const DemoOptions& options, const Context& context) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::Io, "cannot make the folder '{}': {}", folder, error.message());
  const std::string name = std::filesystem::path(path).stem().string() + "_int8.onnx";
  const std::string out = (std::filesystem::path(folder) / name).string();
  QuantizeOptions how;
  how.data = options.evaluate.data;
  const std::int64_t limit = how.data.limit;
  how.data.limit =
      limit > 0 ? std::min(limit, options.calibration_samples) : options.calibration_samples;
  quantize(path, out, how, context);
  return out;
}

}  // namespace

std::vector<DemoRow> demo(const DemoOptions& options, const Context& context) {
  if (options.models.empty()) fail(ErrorKind::Usage, "the demo needs a model: give --model PATH");
  std::vector<DemoRow> rows;
  for (const std::string& path : options.models) {
    DemoRow row = score(path, options, context);
    row.timing = bench(path, options.bench, context);
    rows.push_back(std::move(row));
    if (options.int8_folder.empty()) continue;
    const std::string int8 = quantize_into(options.int8_folder, path, options, context);
    // Our engine runs an 8-bit model on float kernels: its time says nothing about integers.
    rows.push_back(score(int8, options, context));
    rows.back().simulated = true;
  }
  return rows;
}

}  // namespace quench
