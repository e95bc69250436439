// SPDX-License-Identifier: Apache-2.0
// Streams a model's activations into statistics.
#include "calibrate/collect.h"

#include <algorithm>

#include "base/format.h"
#include "base/share.h"
#include "calibrate/tally.h"
#include "data/slice.h"
#include "observe/statistics_bytes.h"

namespace quench::calibrate {
namespace {

/// The batch that the model fixes, or 0.
std::int64_t fixed_batch(const Model& model) {
  for (const ValueId id : model.graph.inputs) {
    const Value& value = model.graph[id];
    if (value.constant || !value.type.shape || value.type.shape->empty()) continue;
    const Dim& batch = value.type.shape->front();
    if (batch.known()) return std::max<std::int64_t>(1, batch.value);
  }
  return 0;
}

std::int64_t samples_of(const SampleSource& source, const CollectOptions& options) {
  const std::int64_t rest = source.size() - options.first;
  return options.count < 0 ? rest : std::min(options.count, rest);
}

/// Whether a run failed for the ceiling that the caller has set.
bool wants_less(const Error& error, const Context& context) {
  return context.max_memory_mb > 0 && error.kind() == ErrorKind::Unsupported &&
         std::string_view(error.what()).find("the ceiling of") != std::string_view::npos;
}

/// The pass of this process, over all that the options name.
StatisticMap collect_here(const Model& model, const std::vector<std::string>& values,
                          SampleSource& source, const CollectOptions& options,
                          const Context& context) {
  const std::int64_t count = samples_of(source, options);
  Tally tally(values, context.num_threads());
  tally.merge(options.seen);
  if (count <= 0) return tally.statistics();
  SessionOptions session_options;
  session_options.taps = values;
  session_options.taps.insert(session_options.taps.end(), options.others.begin(),
                              options.others.end());
  session_options.integer = options.integer;
  session_options.on_sample = [&](TapSample sample) {
    if (sample.tap < values.size()) return tally.add(sample);
    sample.tap -= values.size();
    options.on_other(sample);
  };
  session_options.on_summary = [&](const TapSummary& summary) { tally.add(summary); };
  session_options.summarized = values.size();
  Session session(model, session_options, context);
  const std::int64_t fixed = fixed_batch(model);
  const auto unlike = fixed > 0 ? UnlikeSamples::Refuse : UnlikeSamples::EndBatch;
  std::int64_t size = fixed > 0 ? fixed : source.batchable() ? options.batch : 1;
  // Who looks at values himself cannot take back what he saw of a batch that did not fit.
  if (context.max_memory_mb > 0 && options.on_other && fixed == 0) size = 1;
  const std::int64_t end = options.first + count;
  std::int64_t done = options.first;
  for (bool all = false; !all;) {
    data::Slice slice(source, done, end - done);
    BatchReader reader(slice, size, context, unlike);
    std::int64_t running = 0;
    try {
      while (const auto batch = reader.next()) {
        context.check_cancelled();
        running = batch->size();
        const TensorMap outputs = session.run(batch->inputs);
        tally.keep();
        if (options.on_outputs) options.on_outputs(outputs, batch->size());
        done += batch->size();
        context.report("calibrating", done, end);
        if (options.after_batch) options.after_batch(done, [&] { return tally.statistics(); });
      }
      all = true;
    } catch (const Error& error) {
      if (!wants_less(error, context)) throw;
      tally.discard();
      if (running < 2) {
        fail(ErrorKind::Unsupported,
             "one sample does not fit under the ceiling of {} MB of memory; take a higher "
             "--max-memory",
             context.max_memory_mb);
      }
      if (fixed > 0) throw;
      size = (running + 1) / 2;
      context.warn(format("--max-memory is too small for {} samples at a time: {} are taken",
                          running, size));
    }
  }
  return tally.statistics();
}

/// The pass of ranks that may die: more parts than ranks, each kept when it is done.
StatisticMap collect_among_living(const Model& model, const std::vector<std::string>& values,
                                  SampleSource& source, const CollectOptions& options,
                                  const Context& context) {
  constexpr std::int64_t kPartsOfRank = 4;
  const std::int64_t fixed = fixed_batch(model);
  const std::int64_t unit = fixed > 0 ? fixed : options.batch;
  const std::int64_t count = samples_of(source, options);
  const std::int64_t parts =
      std::min((count + unit - 1) / unit, kPartsOfRank * context.ranks->size());
  const std::vector<Bytes> found = spread(*context.ranks, "statistics", parts, [&](std::int64_t i) {
    const Share share = share_of(count, unit, i, parts);
    CollectOptions own = options;
    own.first = options.first + share.first;
    own.count = share.count;
    if (i > 0) own.seen.clear();
    return observe::to_bytes(collect_here(model, values, source, own, context));
  });
  StatisticMap statistics;
  for (const Bytes& part : found) append(statistics, observe::from_bytes(part));
  return statistics;
}

/// The pass of all ranks: each has neighbouring batches, and what they saw is joined in their
/// order, as if one process had seen all.
StatisticMap collect_together(const Model& model, const std::vector<std::string>& values,
                              SampleSource& source, const CollectOptions& options,
                              const Context& context) {
  Ranks& ranks = *context.ranks;
  if (ranks.elastic()) return collect_among_living(model, values, source, options, context);
  const std::int64_t fixed = fixed_batch(model);
  const Share share = share_of(samples_of(source, options), fixed > 0 ? fixed : options.batch,
                               ranks.rank(), ranks.size());
  CollectOptions own = options;
  own.first = options.first + share.first;
  own.count = share.count;
  if (ranks.rank() > 0) own.seen.clear();
  StatisticMap statistics = collect_here(model, values, source, own, context);
  constexpr std::string_view kWhat = "statistics";
  join_up(
      ranks, kWhat, [&] { return observe::to_bytes(statistics); },
      [&](const Bytes& part) { append(statistics, observe::from_bytes(part)); });
  Bytes all;
  if (ranks.rank() == 0) all = observe::to_bytes(statistics);
  all = broadcast(ranks, kWhat, std::move(all));
  return ranks.rank() == 0 ? statistics : observe::from_bytes(all);
}

}  // namespace

StatisticMap collect(const Model& model, const std::vector<std::string>& values,
                     SampleSource& source, const CollectOptions& options, const Context& context) {
  if (samples_of(source, options) <= 0 && options.first == 0) {
    fail(ErrorKind::BadData,
         "there are no samples to calibrate with; give --data a folder or file "
         "that holds some");
  }
  // Who wants to see every sample gets them all, on every rank.
  const bool watched = options.on_outputs || options.on_other || options.after_batch;
  return context.ranks && !watched ? collect_together(model, values, source, options, context)
                                   : collect_here(model, values, source, options, context);
}

}  // namespace quench::calibrate
