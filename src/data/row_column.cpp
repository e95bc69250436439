// SPDX-License-Identifier: Apache-2.0
// Samples that are the rows of one tensor: .npy, .npz and IDX files.
#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "data/columns.h"
#include "data/idx.h"
#include "data/labels.h"
#include "data/npy.h"
#include "data/pixels.h"

namespace quench::data {
namespace {

std::optional<Shape> known_sizes(const std::vector<Dim>& dims) {
  Shape shape;
  for (const Dim& dim : dims) {
    if (!dim.known()) return std::nullopt;
    shape.push_back(dim.value);
  }
  return shape;
}

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

// Whether a sample may be given the model's shape: dimensions of 1 may come and go, and an input
// of one dimension takes anything flattened. Other changes could mix up a layout unnoticed.
std::optional<Shape> reshape_to(const Shape& sample, const std::vector<Dim>& dims) {
  const std::optional<Shape> wanted = known_sizes(dims);
  if (!wanted || num_elements(sample) != num_elements(*wanted)) return std::nullopt;
  const bool harmless = wanted->size() == 1 || without_ones(sample) == without_ones(*wanted);
  return harmless ? wanted : std::nullopt;
}

Shape with_batch(const InputSpec& spec, Shape sample) {
  if (spec.batched) sample.insert(sample.begin(), 1);
  return sample;
}

class RowColumn final : public Column {
 public:
  RowColumn(const InputSpec& spec, Tensor rows, const std::string& file)
      : spec_(spec), rows_(std::move(rows)), file_(file), cut_(cut_rows(spec, rows_.shape())) {}

  std::int64_t size() const override { return cut_.rows; }
  Tensor read(std::int64_t index) const override { return row_of(spec_, rows_, cut_, index); }
  std::string name(std::int64_t index) const override { return format("{}#{}", file_, index); }

 private:
  InputSpec spec_;
  Tensor rows_;
  std::string file_;
  RowCut cut_;
};

NpyHeader read_npy_header(const ReadFile& file) {
  std::vector<std::byte> start(
      static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kMaxNpyHeader)));
  file.read(0, start);
  return parse_npy_header(start, file.size());
}

/// Large files are neither held in memory nor mapped: one that another program cuts off meanwhile
/// is an error of the sample.
class NpyRowColumn final : public Column {
 public:
  NpyRowColumn(const InputSpec& spec, ReadFile file, const NpyHeader& header)
      : spec_(spec),
        file_(std::move(file)),
        dtype_(header.dtype),
        offset_(header.data_offset),
        cut_(cut_rows(spec, header.shape)) {}

  std::int64_t size() const override { return cut_.rows; }
  std::string name(std::int64_t index) const override {
    return format("{}#{}", file_.path(), index);
  }
  Tensor read(std::int64_t index) const override {
    Tensor row = Tensor::zeros(dtype_, cut_.sample);
    const std::span<std::byte> bytes = row.mutable_bytes();
    file_.read(offset_ + static_cast<std::uint64_t>(index) * bytes.size(), bytes);
    return in_type_of(spec_, row);
  }

 private:
  InputSpec spec_;
  ReadFile file_;
  DType dtype_;
  std::uint64_t offset_;
  RowCut cut_;
};

class IdxColumn final : public Column {
 public:
  IdxColumn(const InputSpec& spec, const Tensor& pixels, const std::string& path,
            const ImageOptions& options)
      : spec_(spec), rows_(raw_spec(spec), pixels, path) {
    if (!options.mean.empty() || !options.std.empty()) table_ = normalize_table(options, 1);
    const std::string labels = find_idx_labels(path);
    if (!labels.empty()) labels_ = read_labels(labels).indices;
    if (!labels.empty() && static_cast<std::int64_t>(labels_.size()) != size()) {
      fail(ErrorKind::BadData, "{} holds {} labels, but {} holds {} samples", labels,
           labels_.size(), path, size());
    }
  }

  std::int64_t size() const override { return rows_.size(); }
  std::string name(std::int64_t index) const override { return rows_.name(index); }
  bool holds_pixels() const override { return true; }
  Tensor read(std::int64_t index) const override {
    Tensor row = rows_.read(index);
    if (!table_.empty()) {
      Tensor scaled = Tensor::zeros(DType::Float32, row.shape());
      const auto src = row.data<std::uint8_t>();
      std::transform(src.begin(), src.end(), scaled.mutable_data<float>().begin(),
                     [this](std::uint8_t pixel) { return table_[0][pixel]; });
      row = scaled;
    }
    return in_type_of(spec_, row);
  }

 private:
  static InputSpec raw_spec(InputSpec spec) {
    spec.dtype = DType::Undefined;
    return spec;
  }

  InputSpec spec_;
  RowColumn rows_;
  NormalizeTable table_;
};

}  // namespace

RowCut cut_rows(const InputSpec& spec, const Shape& shape) {
  const Shape rest(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
  if (!spec.dims && !shape.empty()) return {shape[0], with_batch(spec, rest)};
  const std::vector<Dim> wanted = spec.sample_dims();
  if (!shape.empty() && fits(rest, wanted)) return {shape[0], with_batch(spec, rest)};
  if (fits(shape, wanted)) return {1, with_batch(spec, shape)};
  if (!shape.empty()) {
    if (const auto sample = reshape_to(rest, wanted)) return {shape[0], with_batch(spec, *sample)};
  }
  fail(ErrorKind::BadData, "an array of {} does not fit {}", to_string(shape), spec.describe());
}

Tensor row_of(const InputSpec& spec, const Tensor& tensor, const RowCut& cut, std::int64_t index) {
  const std::size_t row_bytes = tensor.bytes().size() / static_cast<std::size_t>(cut.rows);
  const auto bytes = tensor.bytes().subspan(static_cast<std::size_t>(index) * row_bytes, row_bytes);
  return in_type_of(spec, Tensor::view(tensor.dtype(), cut.sample, bytes, tensor.owner()));
}

std::unique_ptr<Column> make_npy_row_column(const InputSpec& spec, const std::string& path) {
  ReadFile file(path);
  try {
    const NpyHeader header = read_npy_header(file);
    // What has to be put in another order is read as a whole.
    const bool plain = !header.big_endian && (!header.fortran_order || header.shape.size() < 2);
    if (plain) return std::make_unique<NpyRowColumn>(spec, std::move(file), header);
  } catch (Error& error) {
    throw error.in(path);
  }
  return make_row_column(spec, read_npy(path), path);
}

std::unique_ptr<Column> make_row_column(const InputSpec& spec, Tensor rows,
                                        const std::string& file) {
  try {
    return std::make_unique<RowColumn>(spec, std::move(rows), file);
  } catch (Error& error) {
    error.in(file);
    throw;
  }
}

std::unique_ptr<Column> make_idx_column(const InputSpec& spec, const std::string& path,
                                        const ImageOptions& options) {
  if (resizes(options)) {
    fail(ErrorKind::Usage, "{}: IDX samples cannot be resized or cropped; leave those options out",
         path);
  }
  check_channel_options(options, 1);
  const Tensor pixels = read_idx(path);
  const bool normalized = !options.mean.empty() || !options.std.empty();
  if (normalized && pixels.dtype() != DType::UInt8) {
    fail(ErrorKind::Unsupported, "{}: mean and std need 8-bit samples, these are {}", path,
         name_of(pixels.dtype()));
  }
  try {
    return std::make_unique<IdxColumn>(spec, pixels, path, options);
  } catch (Error& error) {
    error.in(path);
    throw;
  }
}

}  // namespace quench::data
