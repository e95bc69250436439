// SPDX-License-Identifier: Apache-2.0
// Paddle's row in the table of formats: programs and PIR, with parameters beside them.
#include "base/format.h"

#include <algorithm>
#include <filesystem>

#include "formats/paddle/file.h"
#include "formats/paddle/write/file.h"
#include "formats/registry.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

constexpr auto kBlock = std::byte{0x0a};       // field 1 of a program, a message
constexpr auto kBlockIndex = std::byte{0x08};  // which opens with field 1, a number

/// A program has no magic number: its first block opens with its own number, where a TensorFlow
/// graph's first node opens with a name.
bool is_program(std::span<const std::byte> file) {
  if (file.empty() || file[0] != kBlock) return false;
  std::size_t at = 1;
  while (at < file.size() && (file[at] & std::byte{0x80}) != std::byte{0} && at < 6) ++at;
  return at + 1 < file.size() && file[at + 1] == kBlockIndex;
}

bool sniff(std::span<const std::byte> file) { return is_program(file) || paddle::is_pir(file); }

std::vector<std::string> models_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    const std::string extension = path.extension().string();
    const bool named = path.filename() == "__model__" || extension == ".pdmodel";
    if (named || (extension == ".json" && paddle::is_pir_file(path.string()))) {
      found.push_back(path.string());
    }
  }
  return found;
}

std::string own_data_file(const std::string& path) {
  const std::string params = paddle::write::params_path(path);
  std::error_code error;
  return fs::exists(params, error) ? params : "";
}

}  // namespace

FormatInfo paddle_format() {
  return {
      .name = "paddle",
      .summary = "Paddle programs (.pdmodel, __model__) and PIR (.json), with parameters beside",
      .extension = ".pdmodel",
      .sniff = sniff,
      .read = paddle::read_model,
      .data_files = paddle::data_files,
      .own_data_file = own_data_file,
      .stage = paddle::write::stage_program,
      .models_in = models_in,
      .file_in_folder = "inference.pdmodel",
      .other_name = "__model__"};
}

}  // namespace quench
