// SPDX-License-Identifier: Apache-2.0
// ONNX files: reading and writing whole models.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "formats/onnx/source.h"
#include "quench/model.h"

namespace quench::onnx {

/// Protobuf readers take no file of 2 GB or more; beyond this, weights go into a data file.
inline constexpr std::uint64_t kMaxFileBytes = (std::uint64_t{1} << 31) - 1;

/// A model from bytes in memory; `path` gives the folder of data files.
Model read_bytes(const std::string& path, Stored file, const ReadOptions& options = {});
Model read_file(const std::string& path, const ReadOptions& options = {});

/// The data files that the model at `path` names, as it names them; none where there is no model.
std::set<std::string> data_locations(const std::string& path);

/// Writes the model aside, and a data file where weights are external, and reads both again.
std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path,
                                   const SaveOptions& options,
                                   std::uint64_t max_file_bytes = kMaxFileBytes);

/// A model without the bytes of its tensors, which are numbered instead.
struct Shell {
  std::string text;
  std::vector<Tensor> parts;
};
Shell to_shell(const Model& model);
/// The reverse; `parts` come from a file and may be anything.
Model from_shell(std::span<const std::byte> text, std::vector<Stored> parts);

/// Throws Error(Internal) that names what differs, bytes of weights included.
void expect_same(const Model& written, const Model& read_again);

}  // namespace quench::onnx
