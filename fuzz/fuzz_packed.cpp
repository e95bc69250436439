// SPDX-License-Identifier: Apache-2.0
// Fuzzes packed files. The first byte picks: a file as it is; a head, over which the right header
// and checksum are put; or one coding's parameters and a chunk.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "formats/packed/compress.h"
#include "formats/packed/file.h"
#include "quench/error.h"
#include "quench/model.h"

namespace {

using quench::packed::Bytes;

void read_file(Bytes bytes) {
  // A copy of exactly this size, so that a read past its end is seen.
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  quench::Model model = quench::packed::read_bytes({*copy, copy});
  quench::verify(model);
  (void)quench::dump(model);
}

void read_head(Bytes head) {
  const std::string stored = quench::packed::zstd_compress(head, 1);
  quench::packed::ByteWriter out;
  out.bytes(quench::packed::view(quench::packed::kMagic));
  out.u32(quench::packed::kVersion);
  out.u32(0);
  out.u64(quench::packed::kHeaderBytes + stored.size());
  out.u64(stored.size());
  out.u64(head.size());
  out.u32(quench::packed::checksum(quench::packed::view(stored),
                                   quench::packed::checksum(quench::packed::view(out.text()))));
  out.bytes(quench::packed::view(stored));
  read_file(quench::packed::view(out.text()));
}

void decode(Bytes bytes) {
  quench::packed::ByteReader in(bytes);
  const auto codings = quench::packed::all_codings();
  const auto& coding = codings[in.u8() % codings.size()];
  const int bits = 2 << (in.u8() % 4);
  const std::uint64_t count = in.varint(100000, "the number of symbols");
  const std::uint64_t begin = in.varint(1 << 20, "the first symbol");
  const auto coder = coding.read(in, {.count = count, .bits = bits});
  std::vector<quench::packed::Symbol> symbols(static_cast<std::size_t>(count));
  coder->decode(in.bytes(in.left()), begin, symbols);
  for (const auto symbol : symbols) {
    if (symbol >> bits != 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    if (data[0] % 3 == 0) read_file(bytes);
    if (data[0] % 3 == 1) read_head(bytes);
    if (data[0] % 3 == 2) decode(bytes);
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
