// SPDX-License-Identifier: Apache-2.0
// Samples that are files of their own: images, raw tensors and single arrays.
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/module.h"
#include "data/columns.h"
#include "data/images/image_reader.h"

namespace quench::data {
namespace {

class ImageColumn final : public Column {
 public:
  ImageColumn(const InputSpec& spec, Folder folder, const ImageLayout& layout,
              std::unique_ptr<ImageReader> reader)
      : spec_(spec), folder_(std::move(folder)), layout_(layout), reader_(std::move(reader)) {
    labels_ = folder_.labels;
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(folder_.names.size()); }
  std::string name(std::int64_t index) const override {
    return folder_.names[static_cast<std::size_t>(index)];
  }
  std::string image_file(std::int64_t index) const override {
    return folder_.full_path(static_cast<std::size_t>(index));
  }
  bool holds_pixels() const override { return true; }
  Tensor read(std::int64_t index) const override {
    const std::string path = image_file(index);
    const Image image = reader_->read(path);
    try {
      return image_to_tensor(image, spec_, layout_);
    } catch (Error& error) {
      error.in(path);
      throw;
    }
  }

 private:
  InputSpec spec_;
  Folder folder_;
  ImageLayout layout_;
  std::unique_ptr<ImageReader> reader_;
};

/// The bytes of a sample, and of the whole input where its batch is fixed.
struct BinSize {
  Shape sample;
  std::uint64_t sample_bytes = 0;
  std::int64_t batch = 1;
};

BinSize bin_size(const InputSpec& spec) {
  BinSize size;
  std::vector<Dim> dims = spec.dims.value_or(std::vector<Dim>{Dim{}});
  if (spec.batched && dims[0].known()) size.batch = dims[0].value;
  if (spec.batched) dims[0] = Dim{1, ""};
  for (const Dim& dim : dims) size.sample.push_back(dim.known() ? dim.value : -1);
  const auto count = num_elements(size.sample);
  const auto bytes = count ? num_bytes(spec.dtype, *count) : std::nullopt;
  if (!spec.dims || !bytes || *bytes == 0) {
    fail(ErrorKind::Unsupported,
         "{} leaves dimensions open, so raw .bin files do not tell its shape; use .npy files",
         spec.describe());
  }
  size.sample_bytes = *bytes;
  return size;
}

/// The bytes of an NHWC tensor in the order of `shape`, which is NCHW.
Tensor channels_first(DType dtype, const Shape& shape, std::span<const std::byte> src) {
  Tensor result = Tensor::zeros(dtype, shape);
  const auto channels = static_cast<std::size_t>(shape[1]);
  const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
  const std::size_t item = src.size() / (static_cast<std::size_t>(shape[0]) * channels * pixels);
  std::byte* dst = result.mutable_bytes().data();
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t image = static_cast<std::size_t>(n) * channels * pixels;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel, dst += item) {
        std::memcpy(dst, src.data() + (image + pixel * channels + c) * item, item);
      }
    }
  }
  return result;
}

class BinColumn final : public Column {
 public:
  BinColumn(const InputSpec& spec, Folder folder, BinLayout layout)
      : spec_(spec), folder_(std::move(folder)), size_(bin_size(spec)) {
    transposed_ = layout == BinLayout::Nhwc && size_.sample.size() == 4;
    labels_ = folder_.labels;
    for (std::size_t i = 0; i < folder_.names.size(); ++i) check_size(i);
    if (rows_ > 1 && !labels_.empty()) {
      fail(ErrorKind::BadData, "{}: each file holds {} samples; give labels in order, not by name",
           folder_.path, rows_);
    }
  }

  std::int64_t size() const override {
    return static_cast<std::int64_t>(folder_.names.size()) * rows_;
  }
  std::string name(std::int64_t index) const override {
    const std::string& file = folder_.names[static_cast<std::size_t>(index / rows_)];
    return rows_ == 1 ? file : format("{}#{}", file, index % rows_);
  }
  Tensor read(std::int64_t index) const override {
    const std::string path = folder_.full_path(static_cast<std::size_t>(index / rows_));
    const ReadFile file(path);
    const std::uint64_t wanted = size_.sample_bytes * static_cast<std::uint64_t>(rows_);
    if (file.size() != wanted) fail_size(path, file.size());
    Tensor sample = Tensor::zeros(spec_.dtype, size_.sample);
    file.read(static_cast<std::uint64_t>(index % rows_) * size_.sample_bytes,
              sample.mutable_bytes());
    return transposed_ ? channels_first(spec_.dtype, size_.sample, sample.bytes()) : sample;
  }

 private:
  void check_size(std::size_t index) {
    const std::string path = folder_.full_path(index);
    const std::uint64_t bytes = file_size(path);
    const std::int64_t rows = bytes == size_.sample_bytes ? 1 : size_.batch;
    if (index == 0) rows_ = rows;
    if (rows != rows_ || bytes != size_.sample_bytes * static_cast<std::uint64_t>(rows)) {
      fail_size(path, bytes);
    }
  }
  [[noreturn]] void fail_size(const std::string& path, std::uint64_t bytes) const {
    fail(ErrorKind::BadData, "{}: {} bytes, but {} needs {}", path, bytes, spec_.describe(),
         size_.sample_bytes * static_cast<std::uint64_t>(rows_));
  }

  InputSpec spec_;
  Folder folder_;
  BinSize size_;
  bool transposed_ = false;  ///< files are NHWC
  std::int64_t rows_ = 1;
};

class NpyColumn final : public Column {
 public:
  NpyColumn(const InputSpec& spec, Folder folder) : spec_(spec), folder_(std::move(folder)) {
    labels_ = folder_.labels;
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(folder_.names.size()); }
  std::string name(std::int64_t index) const override {
    return folder_.names[static_cast<std::size_t>(index)];
  }
  Tensor read(std::int64_t index) const override {
    const std::string path = folder_.full_path(static_cast<std::size_t>(index));
    const Tensor tensor = read_npy(path);
    try {
      const RowCut cut = cut_rows(spec_, tensor.shape());
      if (cut.rows != 1) {
        fail(ErrorKind::BadData,
             "holds {} samples, but in a folder each file is one; name the file itself instead",
             cut.rows);
      }
      return row_of(spec_, tensor, cut, 0);
    } catch (Error& error) {
      error.in(path);
      throw;
    }
  }

 private:
  InputSpec spec_;
  Folder folder_;
};

}  // namespace

std::unique_ptr<Column> make_image_column(const InputSpec& spec, Folder folder,
                                          const ImageOptions& options, const Context& context) {
  const ImageLayout layout = image_layout(spec, options.color);
  check_channel_options(options, layout.channels);
  auto* make =
      reinterpret_cast<MakeImageReader*>(module_symbol("images", kMakeImageReader, context));
  std::unique_ptr<ImageReader> reader(make(options, layout.channels));
  return std::make_unique<ImageColumn>(spec, std::move(folder), layout, std::move(reader));
}

std::unique_ptr<Column> make_bin_column(const InputSpec& spec, Folder folder, BinLayout layout) {
  return std::make_unique<BinColumn>(spec, std::move(folder), layout);
}

std::unique_ptr<Column> make_npy_column(const InputSpec& spec, Folder folder) {
  return std::make_unique<NpyColumn>(spec, std::move(folder));
}

}  // namespace quench::data
