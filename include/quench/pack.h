// SPDX-License-Identifier: Apache-2.0
// Packed model files: any ONNX model in as few bytes as its numbers need, without loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quench {

/// What one coding holds of a packed file.
struct PackedCoding {
  std::string name;  ///< "plain", "indexed", "sparse", "ans", "zstd"; "head" is all but the tensors
  std::int64_t streams = 0;
  std::int64_t bytes = 0;   ///< unpacked
  std::int64_t stored = 0;  ///< in the file
};

/// What is in a packed file.
struct PackSummary {
  std::int64_t bytes = 0;  ///< of the file
  std::vector<PackedCoding> codings;
};

/// Describes a packed file; throws Error(BadModel) for any other.
PackSummary describe_packed(const std::string& path);

}  // namespace quench
