// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a model's tensors come from: its own file, and data files beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/window.h"

namespace quench::onnx {

class TensorProto;

/// How a model is read.
struct ReadOptions {
  /// Copy tensors that are not aligned for their type. Off only to compare a file just written.
  bool align = true;
  /// Data files that do not have their final name yet: location to path.
  std::map<std::string, std::string> redirects;
  /// Where given, receives the locations of the data files.
  std::set<std::string>* locations = nullptr;
};

/// Bytes and what keeps them alive.
struct Stored {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

class Source {
 public:
  /// Bytes of a data file up to this are read at once.
  static constexpr std::size_t kSmall = 4096;

  /// `path` gives the folder of data files; `file` holds the model itself.
  Source(const std::string& path, Stored file, ReadOptions options);
  /// A source whose tensors are numbered instead: positions count `parts`.
  explicit Source(std::vector<Stored> parts) : parts_(std::move(parts)), numbered_(true) {}

  /// The bytes of the model's file in [position, position + size).
  Stored inside(std::uint64_t position, std::uint64_t size) const;
  /// The bytes that a tensor's external_data names; `expected` is what its type and shape take, and
  /// not 0. The path must lead to a file in the model's folder or below, links resolved. What
  /// is not small stays there; tensors of the same bytes get the same source.
  std::shared_ptr<const ByteSource> outside(const TensorProto& proto, std::uint64_t expected,
                                            std::size_t alignment);

  const ReadOptions& options() const noexcept { return options_; }

 private:
  Stored part(std::uint64_t number, std::uint64_t size) const;
  const WindowedFile& open(const std::string& location);

  std::string folder_;
  Stored file_;
  ReadOptions options_;
  std::vector<Stored> parts_;
  bool numbered_ = false;
  std::map<std::string, std::shared_ptr<const WindowedFile>> files_;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::shared_ptr<const ByteSource>>
      outside_;  ///< by location, offset and size
};

}  // namespace quench::onnx
