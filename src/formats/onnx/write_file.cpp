// SPDX-License-Identifier: Apache-2.0
// Writes a model and its data file so that a failure leaves the old pair as it was.
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/file.h"
#include "formats/onnx/lift.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

namespace fs = std::filesystem;

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

void write_blocks(std::span<const Store::Block> blocks, AtomicFile& file) {
  constexpr std::array<std::byte, 64> kPadding{};
  std::uint64_t end = 0;
  for (const Store::Block& block : blocks) {
    file.write(std::span(kPadding).first(static_cast<std::size_t>(block.offset - end)));
    file.write(block.bytes);
    end = block.offset + block.bytes.size();
  }
}

/// Keeps the old data file under a second name until both new files stand.
class Backup {
 public:
  explicit Backup(const std::string& path) : path_(path), copy_(path + ".old") {
    std::error_code error;
    fs::remove(copy_, error);
    existed_ = fs::exists(path_, error);
    if (existed_) fs::create_hard_link(path_, copy_, error);
    usable_ = !error;
  }
  ~Backup() {
    std::error_code error;
    if (!done_ && existed_ && usable_) fs::rename(copy_, path_, error);
    if (!done_ && !existed_) fs::remove(path_, error);
    if (existed_ && usable_) fs::remove(copy_, error);
  }
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;
  void done() noexcept { done_ = true; }

 private:
  std::string path_;
  std::string copy_;
  bool existed_ = false;
  bool usable_ = false;
  bool done_ = false;
};

void commit(AtomicFile& file, AtomicFile* data, const std::string& data_path) {
  if (data == nullptr) return file.commit();
  Backup backup(data_path);
  data->commit();
  file.commit();
  backup.done();
}

}  // namespace

void write_file(const Model& model, const std::string& path, const SaveOptions& options,
                std::uint64_t max_file_bytes) {
  const std::string data_path = path + ".data";
  const std::string location = fs::path(data_path).filename().string();
  Prepared prepared = prepare(model, options.data, location);
  if (prepared.text.size > max_file_bytes) {
    prepared = prepare(model, SaveOptions::Data::External, location);
  }
  if (prepared.text.size > max_file_bytes) {
    fail(ErrorKind::Unsupported,
         "the model has more than {} bytes besides its weights, which no "
         "reader takes",
         max_file_bytes);
  }
  AtomicFile file(path);
  std::optional<AtomicFile> data;
  ReadOptions reading{.align = false, .redirects = {}};
  if (!prepared.store.blocks().empty()) {
    data.emplace(data_path);
    write_blocks(prepared.store.blocks(), *data);
    reading.redirects[location] = data->temporary_path();
  }
  write_text(prepared.text, file);
  expect_same(model, read_file(file.temporary_path(), reading));
  commit(file, data ? &*data : nullptr, data_path);
}

}  // namespace quench::onnx
