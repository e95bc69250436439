// SPDX-License-Identifier: Apache-2.0
// converter_lite's debug reports of two files.
#include "report/debug_info.h"

#include "base/file.h"
#include "data/folder.h"
#include "job/job.h"
#include "job/job_files.h"

namespace quench {

void write_debug_info(const std::string& model_path, const std::string& quantized_path,
                      const DebugInfoOptions& options, const Context& context) {
  with_outputs([&](Outputs& outputs) {
    write_debug_info(model_path, quantized_path, options, context, outputs);
  });
}

void write_debug_info(const std::string& model_path, const std::string& quantized_path,
                      const DebugInfoOptions& options, const Context& context, Outputs& outputs) {
  make_folder(options.folder);
  reads_model(outputs, model_path, "the model");
  reads_model(outputs, quantized_path, "the quantised model");
  data::reads_samples(outputs, options.data);
  Model given = load(model_path);
  set_input_shapes(given, options.input_shapes);
  write_debug_tables(job::prepare_for(std::move(given), options.type), load(quantized_path),
                     options, context, outputs);
}

}  // namespace quench
