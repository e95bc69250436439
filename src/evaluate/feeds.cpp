// SPDX-License-Identifier: Apache-2.0
// Batches to feed a session with: from data, or at random.
#include "evaluate/feeds.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/share.h"
#include "data/slice.h"
#include "evaluate/random_inputs.h"
#include "evaluate/samples.h"

namespace quench {
namespace {

bool is_batch_fixed(const std::vector<Value>& inputs) { return effective_batch(inputs, -1) != -1; }

/// The tensor with its last row repeated until there are `rows` rows.
Tensor filled_up(const Tensor& tensor, std::int64_t samples, std::int64_t rows) {
  if (tensor.rank() == 0 || tensor.shape()[0] != samples || samples == 0) return tensor;
  Shape shape = tensor.shape();
  shape[0] = rows;
  Tensor result = Tensor::zeros(tensor.dtype(), shape);
  const std::span<const std::byte> src = tensor.bytes();
  const std::span<std::byte> dst = result.mutable_bytes();
  const std::size_t row_bytes = src.size() / static_cast<std::size_t>(samples);
  std::copy(src.begin(), src.end(), dst.begin());
  for (std::size_t at = src.size(); at + row_bytes <= dst.size() && row_bytes > 0;
       at += row_bytes) {
    std::memcpy(dst.data() + at, src.data() + src.size() - row_bytes, row_bytes);
  }
  return result;
}

}  // namespace

Tensor real_rows(const Tensor& output, std::int64_t samples, std::int64_t rows) {
  if (samples == rows || output.rank() == 0 || output.dtype() == DType::String) return output;
  // An output may hold several rows a sample, such as boxes.
  if (output.shape()[0] % rows != 0) return output;
  Shape shape = output.shape();
  shape[0] = shape[0] / rows * samples;
  const std::size_t size = num_bytes(output.dtype(), num_elements(shape).value_or(0)).value_or(0);
  return Tensor::view(output.dtype(), shape, output.bytes().first(size), output.owner());
}

FeedReader::FeedReader(const EvaluateOptions& options, const std::vector<Value>& inputs,
                       const Context& context, bool shared, const Session* session)
    : options_(options), inputs_(inputs), context_(context), generator_(context.seed) {
  if (options.batch < 1) {
    fail(ErrorKind::Usage, "the batch must be at least 1; got {}", options.batch);
  }
  batch_ = effective_batch(inputs, options.batch);
  fixed_batch_ = is_batch_fixed(inputs);
  if (options.data.path.empty()) {
    total_ = options.random.samples;
    return;
  }
  source_ = open_data(options.data, inputs, context);
  Share share{.count = source_->size()};
  if (const Ranks* ranks = shared ? sharers(context) : nullptr) {
    share = share_of(share.count, batch_, ranks->rank(), ranks->size());
  }
  total_ = share.count;
  own_ = std::make_unique<data::Slice>(*source_, share.first, share.count);
  reader_ = std::make_unique<BatchReader>(*own_, batch_, context);
  ahead_ = std::make_unique<Ahead<Feed>>([this, session] {
    std::optional<Feed> feed = read_data();
    if (feed && session != nullptr) feed->entered = session->enter(feed->inputs);
    return feed;
  });
}

std::string FeedReader::identity() const {
  return source_ ? evaluation::identity_of(*source_) : "";
}

std::optional<Feed> FeedReader::next() {
  context_.check_cancelled();
  context_.report(source_ ? "evaluate" : "random inputs", done_, total_);
  std::optional<Feed> feed = ahead_ ? ahead_->next() : next_at_random();
  if (feed) done_ += feed->samples;
  return feed;
}

std::optional<Feed> FeedReader::read_data() {
  std::optional<Batch> batch = reader_->next();
  if (!batch) return std::nullopt;
  Feed feed{.inputs = std::move(batch->inputs),
            .labels = std::move(batch->labels),
            .names = std::move(batch->names)};
  feed.samples = feed.rows = static_cast<std::int64_t>(feed.names.size());
  if (fixed_batch_ && feed.samples < batch_) {
    feed.rows = batch_;
    for (auto& [name, tensor] : feed.inputs) tensor = filled_up(tensor, feed.samples, batch_);
  }
  return feed;
}

std::optional<Feed> FeedReader::next_at_random() {
  if (done_ >= total_) return std::nullopt;
  Feed feed;
  feed.samples = std::min(batch_, total_ - done_);
  feed.rows = fixed_batch_ ? batch_ : feed.samples;
  const auto shapes = resolve_shapes(inputs_, options_.random.shapes, feed.rows);
  feed.inputs = random_feeds(inputs_, shapes, generator_);
  return feed;
}

}  // namespace quench
