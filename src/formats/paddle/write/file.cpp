// SPDX-License-Identifier: Apache-2.0
// Writes a program and its parameters.
#include "formats/paddle/write/file.h"

#include <cstdio>

#include "base/format.h"
#include "formats/paddle/file.h"
#include "formats/paddle/params.h"
#include "formats/paddle/write/pir_writer.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// A program does not name its parameters, so a kill between two renames could leave it with those
/// of another model, and nobody would see it. The old program goes first: what a kill leaves is
/// either the old pair, or the new one, or no model.
class StagedProgram final : public Staged {
 public:
  explicit StagedProgram(const ModelFiles& files)
      : program_(files.model), params_(params_file(files)) {}

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

std::unique_ptr<Staged> stage(const ModelFiles& files, std::string_view program,
                              const std::map<std::string, Tensor>& parameters) {
  auto staged = std::make_unique<StagedProgram>(files);
  staged->program().write(program);
  // Sorted by their names' bytes, as the map has them.
  for (const auto& [name, tensor] : parameters) {
    staged->params().write(record_header(tensor));
    staged->params().write(tensor.bytes());
  }
  return staged;
}

/// What a program was read from, be it PIR's.
ProgramDesc source_program(const Model& model) {
  ProgramDesc program = original_program(model);
  return program.blocks_size() > 0 ? program : pir_as_program(model);
}

}  // namespace

std::unique_ptr<Staged> stage_program(const Model& model, const ModelFiles& files,
                                      const SaveOptions& options) {
  Written written = write_program(model, source_program(model));
  if (options.fake_quantize) to_old_form(written);
  std::string text;
  if (!written.program.SerializeToString(&text)) {
    fail(ErrorKind::Unsupported, "the program has more than 2 GB");
  }
  return stage(files, text, written.parameters);
}

void expect_program(const Model& model) { (void)write_program(model, source_program(model)); }

void expect_pir(const Model& model) {
  const std::optional<PirOriginal> original = pir_original(model);
  (void)write_program(model, original ? original->program : original_program(model),
                      Inner::Regions);
}

std::unique_ptr<Staged> stage_pir(const Model& model, const ModelFiles& files,
                                  const SaveOptions& /*options*/) {
  const std::optional<PirOriginal> original = pir_original(model);
  Written written =
      write_program(model, original ? original->program : original_program(model), Inner::Regions);
  const std::string text = to_pir(written, original);
  return stage(files, text, written.parameters);
}

}  // namespace quench::paddle::write
