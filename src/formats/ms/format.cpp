// SPDX-License-Identifier: Apache-2.0
// The row of MindSpore Lite's .ms files in the table of formats.
#include "formats/ms/file.h"
#include "formats/registry.h"

namespace quench {
namespace {

bool sniff(std::span<const std::byte> file) { return ms::is_ms(file); }

Model read(const ModelFiles& /*files*/, const std::shared_ptr<const MappedFile>& file) {
  return ms::read_bytes(file->bytes(), file);
}

}  // namespace

FormatInfo ms_format() {
  return {.name = "ms",
          .summary = "MindSpore Lite models; for quench inspect alone",
          .extension = ".ms",
          .sniff = sniff,
          .read = read,
          .data_files = nullptr,
          .own_data_file = nullptr,
          .stage = nullptr,
          .operators = ms::operator_names,
          .only_shown =
              "a .ms file is what converter_lite made for MindSpore Lite's own runtime, "
              "and can only be looked at (quench inspect); take the model that it was "
              "converted from"};
}

}  // namespace quench
