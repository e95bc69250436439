// SPDX-License-Identifier: Apache-2.0
// What is in a packed file, told from its head alone.
#include "base/format.h"
#include "formats/packed/file.h"
#include "formats/registry.h"
#include "quench/pack.h"

namespace quench {
namespace {

PackSummary describe(packed::Bytes file) {
  const packed::Head head = packed::read_head(file);
  PackSummary summary;
  summary.bytes = static_cast<std::int64_t>(file.size());
  for (const packed::CodingInfo& each : packed::all_codings()) {
    summary.codings.push_back({.name = std::string(each.name)});
  }
  std::int64_t data = 0;
  for (const packed::PackedTensor& tensor : head.tensors) {
    for (const packed::PackedStream& stream : tensor.streams) {
      PackedCoding& row = summary.codings[stream.coding];
      row.streams += 1;
      row.bytes += static_cast<std::int64_t>(tensor.size / tensor.streams.size());
      for (const auto& chunk : stream.chunks) row.stored += static_cast<std::int64_t>(chunk.size);
    }
  }
  for (const PackedCoding& row : summary.codings) data += row.stored;
  summary.codings.push_back({.name = "head",
                             .streams = 1,
                             .bytes = static_cast<std::int64_t>(head.text.size()),
                             .stored = summary.bytes - data});
  std::erase_if(summary.codings, [](const PackedCoding& row) { return row.streams == 0; });
  return summary;
}

}  // namespace

PackSummary describe_packed(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    if (!packed_format().sniff(file->bytes())) {
      fail(ErrorKind::BadModel, "this is no packed file; quench pack makes one");
    }
    return describe(file->bytes());
  } catch (Error& error) {
    throw error.in(path);
  }
}

}  // namespace quench
