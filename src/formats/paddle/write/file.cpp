// SPDX-License-Identifier: Apache-2.0
// Writes a program and its parameters.
#include "formats/paddle/write/file.h"

#include <cstdio>
#include <filesystem>

#include "base/format.h"
#include "formats/paddle/params.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

std::string program_path(const std::string& path) {
  const std::size_t comma = path.rfind(',');
  const bool named = comma != std::string::npos && !path.ends_with(".pdmodel");
  return named ? path.substr(0, comma) : path;
}

/// A program does not name its parameters, so a kill between two renames could leave it with those
/// of another model, and nobody would see it. The old program goes first: what a kill leaves is
/// either the old pair, or the new one, or no model.
class StagedProgram final : public Staged {
 public:
  explicit StagedProgram(const std::string& path)
      : program_(program_path(path)), params_(params_path(path)) {}

  AtomicFile& program() { return program_; }
  AtomicFile& params() { return params_; }
  const std::string& path() const noexcept override { return program_.path(); }
  void finish() override {
    params_.finish();
    program_.finish();
  }
  std::uint64_t size() const noexcept override { return program_.size() + params_.size(); }
  void commit() override {
    std::remove(program_.path().c_str());
    params_.commit();
    program_.commit();
  }

 private:
  AtomicFile program_;
  AtomicFile params_;
};

}  // namespace

std::string params_path(const std::string& path) {
  const std::filesystem::path program(program_path(path));
  if (program.string().size() < path.size()) {
    return (program.parent_path() / path.substr(program.string().size() + 1)).string();
  }
  if (program.filename() == "__model__") return (program.parent_path() / "__params__").string();
  return std::filesystem::path(program).replace_extension(".pdiparams").string();
}

std::unique_ptr<Staged> stage_program(const Model& model, const std::string& path,
                                      const SaveOptions& options) {
  Written written = write_program(model);
  if (options.fake_quantize) to_old_form(written);
  auto files = std::make_unique<StagedProgram>(path);
  std::string text;
  if (!written.program.SerializeToString(&text)) {
    fail(ErrorKind::Unsupported, "the program has more than 2 GB");
  }
  files->program().write(text);
  // Sorted by their names' bytes, as the map has them.
  for (const auto& [name, tensor] : written.parameters) {
    files->params().write(record_header(tensor));
    files->params().write(tensor.bytes());
  }
  return files;
}

}  // namespace quench::paddle::write
