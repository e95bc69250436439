// SPDX-License-Identifier: Apache-2.0
// A Caffe network and its weights as a model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/locate.h"
#include "quench/model.h"

namespace quench {
class MappedFile;
}

namespace quench::caffe {

/// The text of a network and the bytes of its weights.
Model read_bytes(std::span<const std::byte> text, std::span<const std::byte> weights);

/// `model` names either file; the other is named too, lies beside it under the same name, or is
/// the only one of its kind there.
Model read_model(const ModelFiles& files, const std::shared_ptr<const MappedFile>& model);
/// The other file, where there is one.
std::vector<std::string> data_files(const ModelFiles& files);

}  // namespace quench::caffe
