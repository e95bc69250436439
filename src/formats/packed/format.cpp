// SPDX-License-Identifier: Apache-2.0
// The packed format's row in the table of formats.
#include <cstring>

#include "formats/packed/file.h"
#include "formats/registry.h"

namespace quench {
namespace {

bool sniff(std::span<const std::byte> file) {
  return file.size() >= packed::kMagic.size() &&
         std::memcmp(file.data(), packed::kMagic.data(), packed::kMagic.size()) == 0;
}

Model read(const ModelFiles& /*files*/, const std::shared_ptr<const MappedFile>& file) {
  return packed::read_bytes({file->bytes(), file});
}

std::unique_ptr<Staged> stage(const Model& model, const ModelFiles& files,
                              const SaveOptions& options) {
  return packed::stage_file(model, files.model, options);
}

}  // namespace

FormatInfo packed_format() {
  return {.name = "packed",
          .summary = "Quench's own, for any bit width: bit-packed, entropy-coded, checksummed",
          .extension = ".qnch",
          .sniff = sniff,
          .read = read,
          .data_files = nullptr,
          .own_data_file = nullptr,
          .stage = stage};
}

}  // namespace quench
