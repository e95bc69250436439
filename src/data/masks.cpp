// SPDX-License-Identifier: Apache-2.0
// Masks as image files beside the samples.
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/columns.h"
#include "data/truths.h"

namespace quench::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kExtensions = {".png", ".pgm"};
constexpr float kIgnored = 255;
constexpr std::size_t kHeader = 26;  ///< bytes of a PNG up to its kind of colour

/// Pixels must be classes as they are: decoders spread palettes, and fewer or more bits, over
/// 0..255.
void expect_classes(const std::string& path) {
  if (!path.ends_with(".png")) return;
  const ReadFile file(path);
  std::array<std::byte, kHeader> head{};
  if (file.size() < head.size()) fail(ErrorKind::BadData, "{}: the image is cut off", path);
  file.read(0, head);
  constexpr std::size_t kDepth = 24;
  if (std::to_integer<int>(head[kDepth]) == 8 && std::to_integer<int>(head[kDepth + 1]) == 0)
    return;
  fail(ErrorKind::BadData,
       "{}: a mask is an 8-bit gray PNG or PGM whose values are classes; this one has colours, a "
       "palette or other bits: save it anew",
       path);
}

class MaskFiles final : public Truths {
 public:
  MaskFiles(std::string folder, std::unique_ptr<Column> files)
      : folder_(std::move(folder)), files_(std::move(files)) {}

  TruthKind kind() const override { return TruthKind::Masks; }
  std::string path() const override { return folder_; }
  Truth read(std::int64_t index) const override {
    expect_classes(files_->image_file(index));
    const Tensor pixels = files_->read(index);  // [1,1,H,W]
    std::vector<std::int64_t> classes;
    for (const float pixel : pixels.data<float>()) {
      classes.push_back(pixel == kIgnored ? -1 : static_cast<std::int64_t>(pixel));
    }
    const Shape& shape = pixels.shape();
    return {Tensor::of<std::int64_t>({shape[2], shape[3]}, std::span<const std::int64_t>(classes)),
            {}};
  }

 private:
  std::string folder_;
  std::unique_ptr<Column> files_;
};

/// The mask of a sample: of its name, with one of the extensions.
std::string mask_of(const std::string& folder, const std::string& sample) {
  std::error_code code;
  for (const std::string_view extension : kExtensions) {
    const std::string name = fs::path(sample).replace_extension(extension).string();
    if (fs::is_regular_file(fs::path(folder) / name, code)) return name;
  }
  fail(ErrorKind::BadData, "{} has no mask for '{}': expected '{}' or .pgm there", folder, sample,
       fs::path(sample).replace_extension(".png").string());
}

}  // namespace

std::shared_ptr<const Truths> masks_of(const std::string& folder, const Column& samples,
                                       const ImageOptions& image, const Context& context) {
  Folder files{folder, FileKind::Image, {}, {}};
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    files.names.push_back(mask_of(folder, samples.name(i)));
  }
  ImageOptions as_classes = image;
  as_classes.color = ColorOrder::Gray;
  as_classes.method = ResizeMethod::Nearest;
  as_classes.mean.clear();
  as_classes.std.clear();
  const InputSpec spec{.name = "mask",
                       .dtype = DType::Float32,
                       .dims = std::vector<Dim>{Dim{1, ""}, Dim{1, ""}, Dim{}, Dim{}}};
  return std::make_shared<MaskFiles>(
      folder, make_image_column(spec, std::move(files), as_classes, context));
}

}  // namespace quench::data
