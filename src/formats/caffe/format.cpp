// SPDX-License-Identifier: Apache-2.0
// Caffe's row in the table of formats.
#include "formats/caffe/file.h"
#include "formats/caffe/net.h"
#include "formats/caffe/rows.h"
#include "formats/registry.h"
#include "formats/tidy.h"

namespace quench {
namespace {

bool sniff(std::span<const std::byte> file) {
  return caffe::is_prototxt(file) || caffe::is_caffemodel(file);
}

std::vector<std::string> models_in(const std::string& folder) {
  return formats::files_in(folder, ".prototxt");
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const caffe::LayerRow* row : caffe::all_rows()) names.emplace_back(row->type);
  return names;
}

}  // namespace

FormatInfo caffe_format() {
  return {.name = "caffe",
          .summary = "Caffe networks (.prototxt) with their weights (.caffemodel); read only",
          .extension = ".prototxt",
          .sniff = sniff,
          .read = caffe::read_model,
          .data_files = caffe::data_files,
          .own_data_file = nullptr,
          .stage = nullptr,
          .models_in = models_in,
          .operators = operators};
}

}  // namespace quench
