// SPDX-License-Identifier: Apache-2.0
// Paddle's rows in the table of formats: programs and PIR, with parameters beside them.
#include "base/format.h"

#include <algorithm>
#include <filesystem>

#include "formats/paddle/file.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/write/file.h"
#include "formats/registry.h"
#include "formats/tidy.h"

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

bool is_pir(std::span<const std::byte> file) { return paddle::is_pir(file); }

std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> found = formats::files_in(folder, ".pdmodel");
  const fs::path plain = fs::path(folder) / "__model__";
  std::error_code error;
  if (fs::exists(plain, error)) found.push_back(plain.string());
  return found;
}

std::vector<std::string> pir_in(const std::string& folder) {
  std::vector<std::string> found = formats::files_in(folder, ".json");
  std::erase_if(found, [](const std::string& path) { return !paddle::is_pir_file(path); });
  return found;
}

std::string own_data_file(const ModelFiles& files) {
  const std::string params = paddle::params_file(files);
  std::error_code error;
  return fs::exists(params, error) ? params : "";
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const paddle::OpRow* row : paddle::all_rows()) names.emplace_back(row->name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

FormatInfo paddle_format() {
  return {.name = "paddle",
          .summary = "Paddle programs (.pdmodel, __model__), with parameters beside",
          .extension = ".pdmodel",
          .sniff = is_program,
          .read = paddle::read_model,
          .data_files = paddle::data_files,
          .own_data_file = own_data_file,
          .stage = paddle::write::stage_program,
          .models_in = programs_in,
          .file_in_folder = "inference.pdmodel",
          .other_name = "__model__",
          .own_params = true,
          .fake_quantize = true,
          .target = "paddle",
          .operators = operators,
          .float_recurrent = true,
          .expect_writable = paddle::write::expect_program};
}

FormatInfo pir_format() {
  return {.name = "pir",
          .summary = "Paddle 3's PIR (inference.json), with parameters beside",
          .extension = ".json",
          .sniff = is_pir,
          .read = paddle::read_model,
          .data_files = paddle::data_files,
          .own_data_file = own_data_file,
          .stage = paddle::write::stage_pir,
          .models_in = pir_in,
          .own_params = true,
          .quantized_note =
              "Paddle 3.3 itself runs no quantised PIR on a CPU; write a .pdmodel "
              "for that",
          .target = "paddle",
          .float_recurrent = true,
          .expect_writable = paddle::write::expect_pir};
}

}  // namespace quench
