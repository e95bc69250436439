// SPDX-License-Identifier: Apache-2.0
// ONNX's row in the table of formats.
#include "base/format.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "formats/onnx/file.h"
#include "formats/onnx/pair.h"
#include "formats/onnx/wire.h"
#include "formats/registry.h"
#include "formats/tidy.h"
#include "ops/ops.h"

namespace quench {
namespace {

/// The fields of the outermost message and how they are coded. ONNX has no magic number.
bool opens_model(std::uint32_t field, onnx::WireType type) {
  if (field == 1 || field == 5) return type == onnx::WireType::Varint;
  constexpr std::array<std::uint32_t, 10> kMessages{2, 3, 4, 6, 7, 8, 14, 20, 25, 26};
  return type == onnx::WireType::Bytes && std::ranges::find(kMessages, field) != kMessages.end();
}

bool sniff(std::span<const std::byte> file) {
  if (file.empty()) return false;
  const auto tag = std::to_integer<std::uint32_t>(file[0]);
  return tag < 0x80 && opens_model(tag >> 3, static_cast<onnx::WireType>(tag & 7));
}

Model read(const ModelFiles& files, const std::shared_ptr<const MappedFile>& file) {
  return onnx::read_bytes(files.model, {file->bytes(), file});
}

std::unique_ptr<Staged> stage(const Model& model, const ModelFiles& files,
                              const SaveOptions& options) {
  return onnx::stage_file(model, files.model, options);
}

std::vector<std::string> data_files(const ModelFiles& files) {
  std::vector<std::string> found;
  for (const std::string& location : onnx::data_locations(files.model)) {
    found.push_back((std::filesystem::path(files.model).parent_path() / location).string());
  }
  return found;
}

std::string own_data_file(const ModelFiles& files) {
  return onnx::own_data_file(files.model, onnx::data_locations(files.model));
}

std::vector<std::string> models_in(const std::string& folder) {
  return formats::files_in(folder, ".onnx");
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const ops::OpInfo& op : ops::all_ops()) {
    if (op.domain.empty()) names.emplace_back(op.name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

FormatInfo onnx_format() {
  return {.name = "onnx",
          .summary = "ONNX, all opsets, with data inside or beside the file",
          .extension = ".onnx",
          .sniff = sniff,
          .read = read,
          .data_files = data_files,
          .own_data_file = own_data_file,
          .stage = stage,
          .models_in = models_in,
          .operators = operators};
}

}  // namespace quench
