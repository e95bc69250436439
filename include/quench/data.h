// SPDX-License-Identifier: Apache-2.0
// Samples for calibration and evaluation: where they come from and how they are prepared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quench/context.h"
#include "quench/graph.h"
#include "quench/tensor.h"

namespace quench {

/// The order of colour planes that a model was trained on.
enum class ColorOrder { Rgb, Bgr, Gray };
enum class ResizeMethod { Linear, Nearest, Cubic };
/// Whether normalisation comes after resizing and cropping (ImageNet) or before (converter_lite).
enum class NormalizeOrder { Last, First };

struct ImageSize {
  int width = 0;
  int height = 0;
};

/// How an image becomes a tensor. Mean and std are on the 0..255 scale, one value a channel.
struct ImageOptions {
  ColorOrder color = ColorOrder::Rgb;
  std::optional<ImageSize> resize;      ///< to exactly this size
  std::optional<int> resize_shorter;    ///< the shorter side to this, keeping the ratio
  std::optional<ImageSize> resize_fit;  ///< to this height keeping the ratio, padded on the right
  ResizeMethod method = ResizeMethod::Linear;
  std::optional<ImageSize> center_crop;
  std::vector<double> mean;
  std::vector<double> std;
  NormalizeOrder normalize = NormalizeOrder::Last;
};

/// What the files of a folder are; Auto tells it from their names.
enum class DataKind { Auto, Image, Bin };

/// The layout of raw .bin files for an input with 4 dimensions, which is NCHW.
enum class BinLayout {
  Unsaid,  ///< the input's own; NHWC where an INI file says input_type=BIN, as for converter_lite
  Input,   ///< the input's own
  Nhwc,
};

struct GivenSamples;
class SampleSource;
class Truths;

/// What to read. `path` is one path, or `input:path` pairs separated by commas.
struct DataOptions {
  std::string path;
  /// Instead of files; `path` is then kGivenPath. See quench/given_samples.h.
  std::shared_ptr<const GivenSamples> given;
  /// File of "name index" lines, or .npy; boxes, texts or masks: see quench/truth.h. Empty: none,
  /// or the format's own.
  std::string labels;
  std::string characters;  ///< a recogniser's, one a line: `labels` are then texts
  std::int64_t limit = 0;  ///< 0: all
  ImageOptions image;
  DataKind kind = DataKind::Auto;
  BinLayout bin_layout = BinLayout::Unsaid;
  /// The caller's own samples instead of files: see `own_samples`.
  std::shared_ptr<SampleSource> source = nullptr;
};

/// One sample: a tensor for each model input, with its batch dimension, which is 1.
struct Sample {
  TensorMap inputs;
  std::int64_t label = -1;  ///< a class, or the place in the source's truths
  std::string name;         ///< the file, or file#index
};

/// A sequence of samples that can be read again from the start.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::int64_t size() const = 0;
  /// Whether samples have classes.
  virtual bool has_labels() const = 0;
  /// What samples should give, where that is more than a class; null: nothing of that kind.
  virtual std::shared_ptr<const Truths> truths() const { return nullptr; }
  /// Whether samples are pixels from 0 to 255, because neither mean nor std was given.
  virtual bool raw_pixels() const { return false; }
  /// Sample `index`; throws Error(BadData) that names the file.
  virtual Sample read(std::int64_t index) = 0;
  /// Whether `read` may be called from several threads at once.
  virtual bool concurrent() const { return false; }
  /// Whether samples can be put together; false where the inputs have no dimension in common.
  virtual bool batchable() const { return true; }
};

/// Options that stand for samples of the caller's own, which every job takes as it takes files. The
/// second form holds them in memory: a tensor for each input, with its batch dimension, which is 1.
DataOptions own_samples(std::shared_ptr<SampleSource> source);
DataOptions own_samples(std::vector<TensorMap> samples);

/// Opens a source that fits the model's inputs; the kind is told from the path and its contents.
std::unique_ptr<SampleSource> open_data(const DataOptions& options,
                                        const std::vector<Value>& model_inputs,
                                        const Context& context = {});

/// Samples put together along the first dimension.
struct Batch {
  TensorMap inputs;
  std::vector<std::int64_t> labels;
  std::vector<std::string> names;
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(names.size()); }
};

/// What becomes of a batch where the next sample has another shape than those before it: it ends
/// there, smaller than it could be, or Error(BadData) names both samples.
enum class UnlikeSamples { EndBatch, Refuse };

/// Reads a source ahead on a thread of its own and hands out batches in order. Samples of
/// different shapes are never in one batch.
class BatchReader {
 public:
  BatchReader(SampleSource& source, std::int64_t batch_size, const Context& context = {},
              UnlikeSamples unlike = UnlikeSamples::EndBatch);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  /// The next batch, or nothing at the end; an error of the reading thread is thrown here.
  std::optional<Batch> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads one tensor from an .npy file, or one member of an .npz file ("file.npz:member").
Tensor read_npy(const std::string& path);
void write_npy(const Tensor& tensor, const std::string& path);

/// Data options from the `[data_preprocess_param]` section of an INI file.
DataOptions read_data_section(const std::string& ini_path);

}  // namespace quench
