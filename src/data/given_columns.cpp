// SPDX-License-Identifier: Apache-2.0
// Samples that the caller's own code gave, cut into rows where they lie.
#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "data/columns.h"

namespace quench::data {
namespace {

std::string place(std::size_t index) { return format("data[{}]", index); }

/// What one batch holds of an input.
struct Piece {
  Tensor tensor;
  RowCut cut;
  std::int64_t first = 0;  ///< index of its first sample
  std::size_t batch = 0;
};

class GivenColumn final : public Column {
 public:
  explicit GivenColumn(InputSpec spec) : spec_(std::move(spec)) {}

  std::int64_t size() const override { return size_; }
  Tensor read(std::int64_t index) const override {
    const Piece& piece = piece_of(index);
    return row_of(spec_, piece.tensor, piece.cut, index - piece.first);
  }
  std::string name(std::int64_t index) const override {
    const Piece& piece = piece_of(index);
    return format("{}#{}", place(piece.batch), index - piece.first);
  }

  /// Returns how many samples the tensor holds.
  std::int64_t add(const Tensor& tensor, std::size_t batch) {
    if (tensor.dtype() == DType::String) {
      fail(ErrorKind::BadData, "{} takes numbers, and got strings", spec_.describe());
    }
    RowCut cut = cut_rows(spec_, tensor.shape());
    const std::int64_t rows = cut.rows;
    if (rows > 0) pieces_.push_back({tensor, std::move(cut), size_, batch});
    size_ += rows;
    return rows;
  }
  void set_labels(std::vector<std::int64_t> labels) { labels_ = std::move(labels); }

 private:
  const Piece& piece_of(std::int64_t index) const {
    const auto behind = std::ranges::upper_bound(pieces_, index, std::less<>(),
                                                 [](const Piece& p) { return p.first; });
    return *std::prev(behind);
  }

  InputSpec spec_;
  std::vector<Piece> pieces_;
  std::int64_t size_ = 0;
};

/// The tensors of one batch by input, and its labels where it has some.
struct Sorted {
  std::vector<const Tensor*> inputs;
  const Tensor* labels = nullptr;
};

std::vector<std::string> names_of(const std::vector<InputSpec>& specs) {
  std::vector<std::string> names;
  for (const InputSpec& spec : specs) names.push_back(spec.name);
  return names;
}

Sorted sort_in_order(const std::vector<InputSpec>& specs, const GivenBatch& batch) {
  const std::size_t count = batch.in_order.size();
  if (count != specs.size() && count != specs.size() + 1) {
    fail(ErrorKind::BadData,
         "arrays given: {}, inputs of the model: {} ({}); only labels may come behind those", count,
         specs.size(), fmt::join(names_of(specs), ", "));
  }
  Sorted sorted;
  for (std::size_t i = 0; i < specs.size(); ++i) sorted.inputs.push_back(&batch.in_order[i]);
  if (count > specs.size()) sorted.labels = &batch.in_order.back();
  return sorted;
}

Sorted sort_by_name(const std::vector<InputSpec>& specs, const GivenBatch& batch) {
  const std::vector<std::string> names = names_of(specs);
  Sorted sorted;
  for (const auto& [name, tensor] : batch.named) {
    if (std::ranges::find(names, name) != names.end()) continue;
    if (name != "label" && name != "labels") {
      fail(ErrorKind::BadData, "the model has no input '{}'{}; it has {}", name,
           did_you_mean(name, names), fmt::join(names, ", "));
    }
    sorted.labels = &tensor;
  }
  for (const InputSpec& spec : specs) {
    const auto found = batch.named.find(spec.name);
    if (found == batch.named.end()) {
      fail(ErrorKind::BadData, "there is no array for {}", spec.describe());
    }
    sorted.inputs.push_back(&found->second);
  }
  return sorted;
}

Sorted sort(const std::vector<InputSpec>& specs, const GivenBatch& batch) {
  return batch.named.empty() ? sort_in_order(specs, batch) : sort_by_name(specs, batch);
}

void add_labels(const Tensor& tensor, std::int64_t samples, std::vector<std::int64_t>& labels) {
  const DTypeInfo& type = info(tensor.dtype());
  if (type.is_float || tensor.dtype() == DType::String || tensor.size() != samples) {
    fail(ErrorKind::BadData,
         "labels are a class index for each sample, and these are {} {} for {} samples",
         to_string(tensor.shape()), type.name, samples);
  }
  const Tensor whole = convert(tensor, DType::Int64);
  const auto values = whole.data<std::int64_t>();
  labels.insert(labels.end(), values.begin(), values.end());
}

/// Returns the number of samples.
std::int64_t add_batch(const Sorted& sorted, std::size_t index,
                       std::vector<std::unique_ptr<GivenColumn>>& columns) {
  const std::int64_t samples = columns.front()->add(*sorted.inputs.front(), index);
  for (std::size_t i = 1; i < columns.size(); ++i) {
    const std::int64_t others = columns[i]->add(*sorted.inputs[i], index);
    if (others == samples) continue;
    fail(ErrorKind::BadData, "the first input has {} samples, another has {}", samples, others);
  }
  return samples;
}

void check_labels(const std::vector<std::int64_t>& labels, std::int64_t samples) {
  if (labels.empty() || static_cast<std::int64_t>(labels.size()) == samples) return;
  fail(ErrorKind::BadData, "{} labels are given for {} samples", labels.size(), samples);
}

}  // namespace

std::vector<std::unique_ptr<Column>> make_given_columns(const std::vector<InputSpec>& specs,
                                                        const GivenSamples& given) {
  if (specs.empty()) fail(ErrorKind::Usage, "the model has no inputs to feed");
  std::vector<std::unique_ptr<GivenColumn>> columns;
  for (const InputSpec& spec : specs) columns.push_back(std::make_unique<GivenColumn>(spec));
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < given.batches.size(); ++i) {
    const GivenBatch& batch = given.batches[i];
    try {
      const Sorted sorted = sort(specs, batch);
      const std::int64_t samples = add_batch(sorted, i, columns);
      if (sorted.labels != nullptr) add_labels(*sorted.labels, samples, labels);
    } catch (Error& error) {
      throw error.in(place(i));
    }
  }
  const std::int64_t samples = columns.front()->size();
  if (samples == 0) fail(ErrorKind::BadData, "the given data holds no samples");
  if (!given.labels.empty()) labels = given.labels;
  check_labels(labels, samples);
  columns.front()->set_labels(std::move(labels));
  return {std::make_move_iterator(columns.begin()), std::make_move_iterator(columns.end())};
}

}  // namespace quench::data

namespace quench {

std::int64_t count_samples(const GivenBatch& batch, const std::vector<Value>& model_inputs) {
  const std::vector<data::InputSpec> specs = data::describe_inputs(model_inputs);
  if (specs.empty()) fail(ErrorKind::Usage, "the model has no inputs to feed");
  const data::Sorted sorted = data::sort(specs, batch);
  std::int64_t samples = 0;
  for (std::size_t i = specs.size(); i-- > 0;) {
    samples = data::cut_rows(specs[i], sorted.inputs[i]->shape()).rows;
  }
  return samples;
}

}  // namespace quench
