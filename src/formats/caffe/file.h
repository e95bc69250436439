// SPDX-License-Identifier: Apache-2.0
// A Caffe network and its weights as a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/caffe/net.h"
#include "formats/locate.h"
#include "quench/model.h"

namespace quench {
class MappedFile;
}

namespace quench::caffe {

/// Every layer that has no row is named in one Error(Unsupported), before anything else is done.
Model translate(const Net& net, const LayerBlobs& weights);

/// `model` names either file; the other is named too, lies beside it under the same name, or is
/// the only one of its kind there.
Model read_model(const ModelFiles& files, const std::shared_ptr<const MappedFile>& model);
/// The other file, where there is one.
std::vector<std::string> data_files(const ModelFiles& files);

}  // namespace quench::caffe
