// SPDX-License-Identifier: Apache-2.0
// Packed model files; docs/packed-format.md has them byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "formats/onnx/source.h"
#include "formats/packed/coding.h"
#include "quench/model.h"

namespace quench::packed {

/// The first bytes of a file, made to show damage by programs that take it for text.
inline constexpr std::string_view kMagic = "\x89QNCH\r\n\x1a";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 44;

/// What a file may grow to when it is read, so that a small one cannot fill the memory.
std::uint64_t most_bytes(std::uint64_t file_size) noexcept;

/// How a tensor is stored.
enum class Storage : std::uint8_t { Inline = 0, Streams = 1, Same = 2, Pooled = 3 };

/// One stream of a tensor, planned or read.
struct PackedStream {
  Lane lane;
  std::size_t coding = 0;
  std::unique_ptr<Coder> coder;
  struct Chunk {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
  };
  std::vector<Chunk> chunks;
};

/// One tensor of a packed file.
struct PackedTensor {
  std::uint64_t size = 0;  ///< bytes, unpacked
  Storage storage = Storage::Inline;
  /// Same: an earlier tensor with the same bytes. Pooled: the tensor whose next bytes are its own.
  std::uint64_t other = 0;
  Layout layout;
  std::vector<PackedStream> streams;

  std::uint64_t num_symbols() const noexcept { return packed::num_symbols(layout, size); }
};

/// Symbols [first, second) of chunk `number` of a stream.
std::pair<std::uint64_t, std::uint64_t> chunk_range(const Coder& coder, std::uint64_t count,
                                                    std::uint64_t number) noexcept;
std::uint64_t num_chunks(const Coder& coder, std::uint64_t count) noexcept;

/// The streams in which a tensor takes fewest bytes; with `encode` off, plain ones.
PackedTensor plan_tensor(const Tensor& tensor, bool encode);
/// About the bytes that its streams take.
std::uint64_t planned_size(const PackedTensor& tensor);

/// What a file says of itself before its chunks are read.
struct Head {
  std::string text;  ///< everything below, as it lay in the file
  Bytes shell;
  std::vector<PackedTensor> tensors;
  std::vector<Bytes> inside;  ///< bytes of Inline tensors, by tensor
};
/// Checks sizes and checksums of the head; throws Error(BadModel), or Error(Unsupported) for a
/// version that is not known.
Head read_head(Bytes file);

std::uint32_t checksum(Bytes bytes, std::uint32_t before = 0) noexcept;

/// Calls work(begin, end) for runs of tensors that have about `bytes` together; a larger one is a
/// run by itself.
void for_groups(std::span<const Tensor> tensors, std::uint64_t bytes,
                const std::function<void(std::size_t begin, std::size_t end)>& work);

/// Memory for an unpacked tensor.
struct Buffer {
  std::span<std::byte> bytes;
  std::shared_ptr<std::byte> owner;
};
/// Tensors [begin, end). Those that repeat another are left out, those in pools are not filled.
std::vector<Buffer> unpack(Bytes file, const Head& head, std::size_t begin, std::size_t end);

Model read_bytes(const onnx::Stored& file);
/// Throws Error(Internal) where the file does not hold the model, whose tensors are `parts`; takes
/// the memory of some tensors, not of all.
void expect_same(const Model& model, std::span<const Tensor> parts, Bytes file);
/// Writes the model aside and reads it again.
std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path,
                                   const SaveOptions& options);

}  // namespace quench::packed
