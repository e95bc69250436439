// SPDX-License-Identifier: Apache-2.0
// TFLite's row in the table of formats.
#include "formats/registry.h"
#include "formats/tflite/file.h"
#include "formats/tflite/program.h"
#include "formats/tflite/rows.h"

namespace quench {
namespace {

bool sniff(std::span<const std::byte> file) { return tflite::is_tflite(file); }

Model read(const ModelFiles& /*files*/, const std::shared_ptr<const MappedFile>& file) {
  return tflite::read_bytes(file->bytes(), file);
}

std::unique_ptr<Staged> stage(const Model& model, const ModelFiles& files,
                              const SaveOptions& /*options*/) {
  return tflite::stage_file(model, files.model);
}

/// Custom operators are marked: their names are not TFLite's own.
std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const tflite::OpRow* row : tflite::all_rows()) {
    names.push_back(std::string(row->name) + (row->custom ? " (custom)" : ""));
  }
  return names;
}

}  // namespace

FormatInfo tflite_format() {
  return {.name = "tflite",
          .summary = "TFLite and LiteRT models: float, fp16, dynamic-range, integer",
          .extension = ".tflite",
          .sniff = sniff,
          .read = read,
          .data_files = nullptr,
          .own_data_file = nullptr,
          .stage = stage,
          .target = "tflite",
          .operators = operators,
          .as_read = tflite::as_read};
}

}  // namespace quench
