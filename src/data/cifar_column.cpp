// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 in its binary version.
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/format.h"
#include "data/columns.h"
#include "data/pixels.h"

namespace quench::data {
namespace {

constexpr std::size_t kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kRecord = 1 + 3 * kPlane;

struct File {
  std::string name;
  ReadFile data;
  std::int64_t first = 0;  ///< index of its first record
};

class CifarColumn final : public Column {
 public:
  CifarColumn(const InputSpec& spec, const Folder& folder, const ImageOptions& options)
      : spec_(spec),
        layout_(image_layout(spec, options.color)),
        swap_(options.color == ColorOrder::Bgr),
        table_(normalize_table(options, 3)) {
    for (std::size_t i = 0; i < folder.names.size(); ++i) add(folder.names[i], folder.full_path(i));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::string name(std::int64_t index) const override {
    const File& file = file_of(index);
    return format("{}#{}", file.name, index - file.first);
  }
  bool holds_pixels() const override { return true; }
  Tensor read(std::int64_t index) const override {
    const File& file = file_of(index);
    std::array<std::uint8_t, kRecord - 1> record{};
    file.data.read(static_cast<std::uint64_t>(index - file.first) * kRecord + 1,
                   std::as_writable_bytes(std::span(record)));
    Image image{static_cast<int>(kSide), static_cast<int>(kSide), 3, {}};
    image.pixels.resize(3 * kPlane);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const std::uint8_t* plane = record.data() + (swap_ ? 2 - channel : channel) * kPlane;
      for (std::size_t i = 0; i < kPlane; ++i) {
        image.pixels[i * 3 + channel] = table_[channel][plane[i]];
      }
    }
    return image_to_tensor(image, spec_, layout_);
  }

 private:
  void add(const std::string& name, const std::string& path) {
    File file{name, ReadFile(path), size()};
    const std::uint64_t bytes = file.data.size();
    if (bytes == 0 || bytes % kRecord != 0) {
      fail(ErrorKind::BadData, "{}: {} bytes are not a whole number of CIFAR records of {} bytes",
           path, bytes, kRecord);
    }
    for (std::uint64_t at = 0; at < bytes; at += kRecord) {
      std::byte label{};
      file.data.read(at, std::span(&label, 1));
      labels_.push_back(std::to_integer<std::int64_t>(label));
    }
    files_.push_back(std::move(file));
  }
  const File& file_of(std::int64_t index) const {
    const auto after =
        std::upper_bound(files_.begin(), files_.end(), index,
                         [](std::int64_t i, const File& file) { return i < file.first; });
    return *std::prev(after);
  }

  InputSpec spec_;
  ImageLayout layout_;
  bool swap_;
  NormalizeTable table_;
  std::vector<File> files_;
};

bool takes_cifar(const InputSpec& spec) {
  const std::vector<Dim> sample = spec.sample_dims();
  return spec.dims && (fits({3, 32, 32}, sample) || fits({32, 32, 3}, sample));
}

bool is_training(const std::string& name) { return name.starts_with("data_batch"); }

}  // namespace

bool is_cifar_file(const InputSpec& spec, std::uint64_t size) {
  return size != 0 && size % kRecord == 0 && takes_cifar(spec);
}

std::unique_ptr<Column> make_cifar_column(const InputSpec& spec, const Folder& folder,
                                          const ImageOptions& options) {
  if (!takes_cifar(spec)) {
    fail(ErrorKind::BadData, "{}: CIFAR samples are 3x32x32, which does not fit {}", folder.path,
         spec.describe());
  }
  if (resizes(options)) {
    fail(ErrorKind::Usage,
         "{}: CIFAR samples cannot be resized or cropped; leave those options out", folder.path);
  }
  const auto training = std::count_if(folder.names.begin(), folder.names.end(), is_training);
  if (training != 0 && training != static_cast<std::ptrdiff_t>(folder.names.size())) {
    fail(ErrorKind::BadData, "{} holds training and test batches; name one file, such as {}/{}",
         folder.path, folder.path, folder.names.back());
  }
  check_channel_options(options, 3);
  return std::make_unique<CifarColumn>(spec, folder, options);
}

}  // namespace quench::data
