// SPDX-License-Identifier: Apache-2.0
// Recognises files of other tools by their first bytes, for a helpful error.
#include <array>
#include <cstring>

#include "formats/registry.h"

namespace quench {
namespace {

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view kind;
};

constexpr auto kMagics = std::to_array<Magic>({
    {0, "PK\x03\x04",
     "a PyTorch or Keras archive (torch.onnx.export(torch.jit.load(FILE), EXAMPLE, 'model.onnx') "
     "exports TorchScript)"},
    {0, "\x80\x02", "a pickled PyTorch or Paddle file"},
    {4, "ORTM", "an ONNX Runtime .ort model"},
    {0, "\x89HDF", "a Keras HDF5 model"},
    {0, "GGUF", "a GGUF model"},
    {8, "{\"", "a safetensors file, which holds weights but no graph"},
    {0, "{", "JSON, perhaps a Paddle inference.json"},
    {0, "7767517", "an ncnn parameter file"},
    {0, "<?xml", "XML, perhaps an OpenVINO model"},
    {0, "version https://git-lfs", "a Git LFS pointer, not the model itself"},
    {0, "\x1f\x8b", "a gzip archive"},
    {0, "\n", "a Paddle .pdmodel, a TensorFlow graph or a MindIR file that is damaged"},
});

}  // namespace

std::string_view guess_kind(std::span<const std::byte> file) noexcept {
  for (const Magic& each : kMagics) {
    if (file.size() < each.offset + each.bytes.size()) continue;
    if (std::memcmp(file.data() + each.offset, each.bytes.data(), each.bytes.size()) == 0) {
      return each.kind;
    }
  }
  return {};
}

}  // namespace quench
