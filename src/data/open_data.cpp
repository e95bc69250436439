// SPDX-License-Identifier: Apache-2.0
// Finds out what a path holds and joins the columns of all inputs to samples.
#include <filesystem>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/format.h"
#include "data/columns.h"
#include "data/folder.h"
#include "data/idx.h"
#include "data/labels.h"
#include "data/npy.h"
#include "data/own_samples.h"
#include "data/paths.h"
#include "data/pixels.h"
#include "data/truths.h"

namespace quench {
namespace data {
namespace {

namespace fs = std::filesystem;

/// What every column is opened with.
struct Opening {
  const DataOptions& options;
  const Labels* labels;  ///< for the first input only
  const Context& context;
};

void warn_unused(const std::string& path, const Opening& opening) {
  const ImageOptions& image = opening.options.image;
  if (resizes(image) || !image.mean.empty() || !image.std.empty()) {
    opening.context.warn(format(
        "data: {} holds tensors, which are fed as they are; image options do not apply", path));
  }
}

std::unique_ptr<Column> open_files(const InputSpec& spec, Folder folder, const Opening& opening) {
  switch (folder.kind) {
    case FileKind::Image:
      return make_image_column(spec, std::move(folder), opening.options.image, opening.context);
    case FileKind::Cifar:
      return make_cifar_column(spec, folder, opening.options.image);
    case FileKind::Bin:
      warn_unused(folder.path, opening);
      return make_bin_column(spec, std::move(folder), opening.options.bin_layout);
    case FileKind::Npy:
      warn_unused(folder.path, opening);
      return make_npy_column(spec, std::move(folder));
  }
  fail(ErrorKind::Internal, "unknown kind of files in {}", folder.path);
}

Folder only(const std::string& path, FileKind kind) {
  const fs::path file(path);
  const std::string parent = file.parent_path().string();
  return {parent.empty() ? "." : parent, kind, {file.filename().string()}, {}};
}

std::unique_ptr<Column> open_file(const InputSpec& spec, const std::string& path,
                                  const Opening& opening) {
  const std::string name = fs::path(path).filename().string();
  if (has_image_extension(name)) return open_files(spec, only(path, FileKind::Image), opening);
  if (name.find(".npy") != std::string::npos || name.find(".npz") != std::string::npos) {
    warn_unused(path, opening);
    if (path.ends_with(".npy")) return make_npy_row_column(spec, path);
    return make_row_column(spec, read_npy(path), path);
  }
  if (is_idx(path)) return make_idx_column(spec, path, opening.options.image);
  if (!name.ends_with(".bin")) {
    fail(ErrorKind::BadData,
         "{}: cannot tell what this is; expected an image, .npy, .npz, .bin or IDX file", path);
  }
  const bool cifar = opening.options.kind != DataKind::Bin && is_cifar_file(spec, file_size(path));
  return open_files(spec, only(path, cifar ? FileKind::Cifar : FileKind::Bin), opening);
}

std::unique_ptr<Column> open_column(const InputSpec& spec, const std::string& path,
                                    const Opening& opening) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return open_files(spec, list_folder(path, opening.options.kind, opening.labels), opening);
  }
  if (opening.labels != nullptr && opening.labels->by_name()) {
    fail(ErrorKind::BadData,
         "{} gives labels by file name, but {} is one file; give indices in the order of its "
         "samples",
         opening.labels->path, path);
  }
  const std::size_t member = path.rfind(".npz:");
  const std::string file = member == std::string::npos ? path : path.substr(0, member + 4);
  if (!fs::exists(file, code)) fail(ErrorKind::Io, "{}: no such file or folder", file);
  if (!fs::is_regular_file(file, code)) {
    fail(ErrorKind::Io, "{}: neither a regular file nor a folder", file);
  }
  return open_file(spec, path, opening);
}

class TableSource final : public SampleSource {
 public:
  TableSource(const std::vector<InputSpec>& specs, std::vector<std::unique_ptr<Column>> columns)
      : batched_(specs.front().batched), columns_(std::move(columns)) {
    for (const InputSpec& spec : specs) names_.push_back(spec.name);
    size_ = columns_.front()->size();
    for (const auto& column : columns_) {
      if (labels_.empty()) labels_ = column->labels();
    }
  }

  void set_labels(std::vector<std::int64_t> labels) { labels_ = std::move(labels); }
  /// The labels are places in these from now on.
  void set_truths(std::shared_ptr<const Truths> truths) { truths_ = std::move(truths); }
  const std::vector<std::int64_t>& labels() const noexcept { return labels_; }
  const Column& first() const { return *columns_.front(); }
  void set_raw(bool raw) { raw_ = raw; }
  void limit(std::int64_t size) { size_ = std::min(size_, size); }

  std::int64_t size() const override { return size_; }
  bool has_labels() const override { return !labels_.empty() && truths_ == nullptr; }
  std::shared_ptr<const Truths> truths() const override { return truths_; }
  bool raw_pixels() const override { return raw_ && columns_.front()->holds_pixels(); }
  bool concurrent() const override { return true; }
  bool batchable() const override { return batched_; }
  Sample read(std::int64_t index) override {
    if (index < 0 || index >= size_) {
      fail(ErrorKind::Usage, "there is no sample {}; there are {}", index, size_);
    }
    Sample sample;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      sample.inputs[names_[i]] = columns_[i]->read(index);
    }
    sample.name = columns_.front()->name(index);
    if (!labels_.empty()) sample.label = labels_[static_cast<std::size_t>(index)];
    return sample;
  }

 private:
  bool batched_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> labels_;
  std::shared_ptr<const Truths> truths_;
  bool raw_ = false;  ///< neither mean nor std
  std::int64_t size_ = 0;
};

std::vector<std::unique_ptr<Column>> open_columns(const std::vector<InputPath>& paths,
                                                  Opening opening) {
  std::vector<std::unique_ptr<Column>> columns;
  for (const InputPath& input : paths) {
    columns.push_back(open_column(*input.spec, input.path, opening));
    opening.labels = nullptr;
    if (columns.back()->size() == 0) fail(ErrorKind::BadData, "{} holds no samples", input.path);
    if (columns.back()->size() != columns.front()->size()) {
      fail(ErrorKind::BadData, "{} holds {} samples, but {} holds {}; every input needs as many",
           paths.front().path, columns.front()->size(), input.path, columns.back()->size());
    }
  }
  return columns;
}

std::vector<std::unique_ptr<Column>> columns_of(const std::vector<InputSpec>& specs,
                                                const Opening& opening) {
  const DataOptions& options = opening.options;
  if (options.given) {
    if (opening.labels != nullptr && opening.labels->by_name()) {
      fail(ErrorKind::BadData,
           "{} gives labels by file name, but the samples are given as arrays; give indices in "
           "their order",
           opening.labels->path);
    }
    warn_unused("what was given", opening);
    return make_given_columns(specs, *options.given);
  }
  if (options.path == kGivenPath) {
    fail(ErrorKind::Usage,
         "these settings come from a run whose samples were given by code, not by files: give the "
         "data again");
  }
  return open_columns(split_paths(options.path, specs), opening);
}

std::optional<Labels> labels_for(const DataOptions& options) {
  std::error_code code;
  const bool masks = fs::is_directory(options.labels, code);
  if (!options.characters.empty() && (options.labels.empty() || masks)) {
    fail(ErrorKind::Usage, "characters are for texts: give --labels a file of texts, too");
  }
  if (options.labels.empty() || masks) return std::nullopt;
  return read_labels(options.labels, options.characters);
}

/// The file of the image that a label belongs to.
ImageFile files_by_label(const TableSource& source) {
  std::map<std::int64_t, std::string> files;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    files[source.labels()[static_cast<std::size_t>(i)]] = source.first().image_file(i);
  }
  return [files = std::move(files)](std::int64_t label) { return files.at(label); };
}

/// Labels that came in the order of samples, and what labels stand for where they are no classes.
void attach(TableSource& source, std::optional<Labels> labels, const DataOptions& options,
            const Context& context) {
  if (!labels) {
    if (options.labels.empty()) return;
    source.set_truths(masks_of(options.labels, source.first(), options.image, context));
    std::vector<std::int64_t> places(static_cast<std::size_t>(source.size()));
    std::iota(places.begin(), places.end(), 0);
    source.set_labels(std::move(places));
    return;
  }
  if (!labels->by_name()) {
    if (static_cast<std::int64_t>(labels->indices.size()) != source.size()) {
      fail(ErrorKind::BadData, "{} holds {} labels, but {} holds {} samples", options.labels,
           labels->indices.size(), options.path, source.size());
    }
    source.set_labels(std::move(labels->indices));
  }
  if (labels->truths) source.set_truths(labels->truths);
  if (!labels->boxes) return;
  if (source.first().image_file(0).empty()) {
    fail(ErrorKind::BadData,
         "{} holds boxes of image files, and {} holds none; give boxes as an .npy of [N,count,5]",
         options.labels, options.path);
  }
  source.set_truths(
      place_boxes(labels->path, labels->boxes, options.image, files_by_label(source)));
}

}  // namespace
}  // namespace data

std::unique_ptr<SampleSource> open_data(const DataOptions& options,
                                        const std::vector<Value>& model_inputs,
                                        const Context& context) {
  if (options.limit < 0) {
    fail(ErrorKind::Usage, "the limit of samples must not be negative, got {}", options.limit);
  }
  if (options.source != nullptr) return data::open_own_samples(options, model_inputs);
  data::check_image_options(options.image);
  const bool raw = options.image.mean.empty() && options.image.std.empty();
  std::vector<data::InputSpec> specs = data::describe_inputs(model_inputs);
  for (data::InputSpec& spec : specs) spec.raw = raw;
  std::optional<data::Labels> labels = data::labels_for(options);
  const data::Opening opening{options, labels ? &*labels : nullptr, context};
  auto source = std::make_unique<data::TableSource>(specs, data::columns_of(specs, opening));
  data::attach(*source, std::move(labels), options, context);
  source->set_raw(raw);
  if (options.limit > source->size()) {
    context.warn(format("data: {} holds {} samples, fewer than the {} asked for", options.path,
                        source->size(), options.limit));
  }
  if (options.limit > 0) source->limit(options.limit);
  return source;
}

}  // namespace quench
