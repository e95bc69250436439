// SPDX-License-Identifier: Apache-2.0
// Writes a model, and its data file where weights are external.
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/file.h"
#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/file.h"
#include "formats/onnx/lift.h"
#include "formats/onnx/onnx.pb.h"
#include "formats/onnx/pair.h"

namespace quench::onnx {
namespace {

/// A model ready to be written: its text, and what goes into the data file.
struct Prepared {
  Store store;
  Rope text;
};

Prepared prepare(const Model& model, SaveOptions::Data data, const std::string& location) {
  Prepared result{Store(data, location), {}};
  ModelProto proto;
  write_model(model, result.store, proto);
  std::string shell;
  if (proto.ByteSizeLong() > kMaxFileBytes || !proto.SerializeToString(&shell)) {
    fail(ErrorKind::Unsupported, "the model has more than 2 GB besides its weights");
  }
  result.text = splice(shell, result.store.payloads());
  return result;
}

void write_text(const Rope& text, AtomicFile& file) {
  for (const Rope::Piece& piece : text.pieces) {
    file.write(piece.view.empty() ? std::as_bytes(std::span(piece.text)) : piece.view);
  }
}

/// A tensor at a time, and of that what has been written need not stay.
void write_blocks(std::span<const Store::Block> blocks, AtomicFile& file) {
  constexpr std::array<std::byte, 64> kPadding{};
  constexpr std::size_t kStep = std::size_t{16} << 20;
  std::uint64_t end = 0;
  for (const Store::Block& block : blocks) {
    file.write(std::span(kPadding).first(static_cast<std::size_t>(block.offset - end)));
    const Tensor tensor = block.tensor.held();
    const auto bytes = tensor.bytes();
    for (std::size_t done = 0; done < bytes.size(); done += kStep) {
      const auto part = bytes.subspan(done, std::min(kStep, bytes.size() - done));
      file.write(part);
      if (block.tensor.is_stored()) release_pages(part);
    }
    end = block.offset + bytes.size();
  }
}

/// More than a file takes, before anything is brought in to be put there.
bool must_be_outside(const Model& model, std::uint64_t max_file_bytes) {
  std::uint64_t stored = 0;
  for (const Value& value : model.graph.values()) {
    if (value.constant && value.constant->is_stored()) stored += value.constant->num_bytes();
  }
  return stored > max_file_bytes;
}

void check_size(const Prepared& prepared, std::uint64_t max_file_bytes) {
  if (prepared.text.size <= max_file_bytes) return;
  fail(ErrorKind::Unsupported,
       "the model has more than {} bytes besides its weights, which no reader takes",
       max_file_bytes);
}

std::unique_ptr<Staged> stage_pair(const Model& model, const std::string& path,
                                   SaveOptions::Data data, std::uint64_t max_file_bytes) {
  return std::make_unique<StagedPair>(
      path,
      [&](AtomicFile& file) { write_blocks(prepare(model, data, "data").store.blocks(), file); },
      [&](AtomicFile& file, const std::string& location, const std::string& data_path) {
        const Prepared prepared = prepare(model, data, location);
        check_size(prepared, max_file_bytes);
        write_text(prepared.text, file);
        const ReadOptions reading{.align = false, .redirects = {{location, data_path}}};
        const Model again = read_file(file.temporary_path(), reading);
        // The two models differ in a name; the bytes of the weights are compared once.
        if (!data_path.ends_with(location)) expect_same(model, again);
      });
}

/// A model that holds its weights. The data file of the model whose place it takes goes with that
/// one.
class StagedWhole final : public Staged {
 public:
  explicit StagedWhole(const std::string& path)
      : model_(path), stale_(unshared_data_file(path, data_locations(path))) {}

  AtomicFile& model() { return model_; }
  const std::string& path() const noexcept override { return model_.path(); }
  void finish() override { model_.finish(); }
  std::uint64_t size() const noexcept override { return model_.size(); }
  void commit() override {
    model_.commit();
    if (!stale_.empty()) std::remove(stale_.c_str());
  }

 private:
  AtomicFile model_;
  std::string stale_;
};

}  // namespace

std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path,
                                   const SaveOptions& options, std::uint64_t max_file_bytes) {
  SaveOptions::Data data = options.data;
  const bool inside = data == SaveOptions::Data::Inside;
  if (inside && must_be_outside(model, max_file_bytes)) data = SaveOptions::Data::External;
  const Prepared prepared = prepare(model, data, "data");
  const bool too_large = prepared.text.size > max_file_bytes;
  if (too_large) data = SaveOptions::Data::External;
  if (too_large || !prepared.store.blocks().empty()) {
    return stage_pair(model, path, data, max_file_bytes);
  }
  auto file = std::make_unique<StagedWhole>(path);
  write_text(prepared.text, file->model());
  expect_same(model, read_file(file->model().temporary_path(), {.align = false}));
  remove_leftovers(path + ".data", data_locations(path));
  return file;
}

}  // namespace quench::onnx
