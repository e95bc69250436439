// SPDX-License-Identifier: Apache-2.0
// MindIR's row in the table of formats.
#include "formats/mindir/file.h"
#include "formats/mindir/rows.h"
#include "formats/registry.h"

namespace quench {
namespace {

bool sniff(std::span<const std::byte> file) { return mindir::is_mindir(file); }

Model read(const ModelFiles& files, const std::shared_ptr<const MappedFile>& file) {
  return mindir::read_bytes(file->bytes(), files.model);
}

std::unique_ptr<Staged> stage(const Model& model, const ModelFiles& files,
                              const SaveOptions& /*options*/) {
  return mindir::stage_file(model, files.model);
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const mindir::OpRow* row : mindir::all_rows()) names.emplace_back(row->name);
  return names;
}

}  // namespace

FormatInfo mindir_format() {
  return {.name = "mindir",
          .summary = "MindSpore's MindIR, with parameters inside or beside it",
          .extension = ".mindir",
          .sniff = sniff,
          .read = read,
          .data_files = mindir::data_files,
          .own_data_file = nullptr,
          .stage = stage,
          .quantized_note =
              "MindSpore has no quantised operators: rounding and scales are written "
              "as arithmetic, which it computes in float",
          .operators = operators,
          .expect_writable = mindir::expect_writable};
}

}  // namespace quench
