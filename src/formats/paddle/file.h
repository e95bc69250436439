// SPDX-License-Identifier: Apache-2.0
// Paddle's files: a program or PIR, and the parameters beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/locate.h"
#include "formats/paddle/program.h"
#include "quench/model.h"

namespace quench::paddle {

Model read_model(const ModelFiles& files, const std::shared_ptr<const MappedFile>& program);
/// The combined file of parameters that goes with a program: the one that is named, or the one
/// that is called after it.
std::string params_file(const ModelFiles& files);
/// The files of parameters that the model at `files` has. Never throws.
std::vector<std::string> data_files(const ModelFiles& files);
bool is_pir_file(const std::string& path);

/// The tensors of a program's parameters by name: from the file that is named, from the one that
/// goes with the program's name, or from a file for each.
std::map<std::string, Tensor> read_parameters(const Program& program, const ModelFiles& files);

}  // namespace quench::paddle
