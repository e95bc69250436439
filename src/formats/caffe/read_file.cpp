// SPDX-License-Identifier: Apache-2.0
// Finds the two files of a Caffe network by either's name.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "formats/caffe/file.h"
#include "formats/caffe/net.h"
#include "formats/tidy.h"

namespace quench::caffe {
namespace {

namespace fs = std::filesystem;

/// The file beside `path` that ends otherwise: of the same name, or the only one.
std::string beside(const fs::path& path, std::string_view extension) {
  std::error_code error;
  const fs::path same = fs::path(path).replace_extension(extension);
  if (same != path && fs::is_regular_file(same, error)) return same.string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto found = formats::files_in(folder.string(), extension);
  return found.size() == 1 ? found.front() : "";
}

struct Both {
  std::string text, weights;  ///< "": not found
};

Both both_of(const ModelFiles& files, bool is_text) {
  const std::string other = !files.params.empty()
                                ? files.params
                                : beside(files.model, is_text ? ".caffemodel" : ".prototxt");
  return is_text ? Both{files.model, other} : Both{other, files.model};
}

/// A file's own name goes into its errors; that of the model is put there by the caller.
template <typename Read>
auto read_named(const std::string& path, const Read& read) {
  const auto file = MappedFile::open(path);
  try {
    return read(file->bytes());
  } catch (Error& error) {
    throw error.in(path);
  }
}

}  // namespace

Model read_bytes(std::span<const std::byte> text, std::span<const std::byte> weights) {
  return translate(read_net(text), read_weights(weights));
}

Model read_model(const ModelFiles& files, const std::shared_ptr<const MappedFile>& model) {
  const bool is_text = is_prototxt(model->bytes());
  const Both both = both_of(files, is_text);
  if (both.text.empty() || both.weights.empty()) {
    fail(ErrorKind::BadModel,
         "a Caffe network is a .prototxt and a .caffemodel, and the {} is not beside it; name both "
         "with a comma between them (net.prototxt,net.caffemodel) or with --weightFile",
         is_text ? ".caffemodel" : ".prototxt");
  }
  const Net net = is_text ? read_net(model->bytes()) : read_named(both.text, read_net);
  const LayerBlobs weights =
      is_text ? read_named(both.weights, read_weights) : read_weights(model->bytes());
  return translate(net, weights);
}

std::vector<std::string> data_files(const ModelFiles& files) {
  try {
    const auto model = MappedFile::open(files.model);
    const bool is_text = is_prototxt(model->bytes());
    const Both both = both_of(files, is_text);
    const std::string& other = is_text ? both.weights : both.text;
    return other.empty() ? std::vector<std::string>{} : std::vector<std::string>{other};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace quench::caffe
