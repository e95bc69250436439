// SPDX-License-Identifier: Apache-2.0
// Streams a model's activations into statistics.
#include "calibrate/collect.h"

#include <algorithm>

#include "base/ahead.h"
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

/// A batch where it runs.
struct Entered {
  EngineValues inputs;
  std::int64_t size = 0;
  TensorMap memory;  ///< that of `inputs` where they run on the CPU
};

std::optional<Entered> enter(const Session& session, BatchReader& reader) {
  std::optional<Batch> batch = reader.next();
  if (!batch) return std::nullopt;
  return Entered{.inputs = session.enter(batch->inputs),
                 .size = batch->size(),
                 .memory = std::move(batch->inputs)};
}

bool says_full(const Error& error) {
  return error.kind() == ErrorKind::Unsupported &&
         std::string_view(error.what()).find("not enough memory") != std::string_view::npos;
}

/// Whether a run failed for the ceiling that the caller has set.
bool wants_less(const Error& error, const Context& context) {
  return context.max_memory_mb > 0 && error.kind() == ErrorKind::Unsupported &&
         std::string_view(error.what()).find("the ceiling of") != std::string_view::npos;
}

/// A pass over samples: who runs it, and how far it has come.
struct Pass {
  Session& session;
  Tally& tally;
  const CollectOptions& options;
  const Context& context;
  std::int64_t end = 0;
  std::int64_t done = 0;
  std::int64_t running = 0;  ///< samples of the batch that runs
  std::size_t together = 0;  ///< batches that run with it
};

/// As many batches as the session runs together.
std::vector<Entered> next_batches(Pass& pass, Ahead<Entered>& ahead) {
  std::vector<Entered> batches;
  // Who looks at values himself cannot take back what he saw of batches that did not fit together.
  const std::size_t most = pass.options.on_other ? 1 : pass.session.runs_together();
  while (batches.size() < most) {
    auto batch = ahead.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  pass.together = batches.size();
  return batches;
}

std::vector<EngineValues> compute(Pass& pass, const std::vector<Entered>& batches) {
  std::vector<RunRequest> runs;
  for (const Entered& batch : batches) {
    pass.running = batch.size;
    runs.push_back({.feeds = batch.inputs});
  }
  return pass.session.compute_all(runs);
}

void run_batches(Pass& pass, BatchReader& reader) {
  // While a batch runs the next one is put together and brought to where it will run.
  Ahead<Entered> ahead([&] { return enter(pass.session, reader); });
  const CollectOptions& options = pass.options;
  while (true) {
    const std::vector<Entered> batches = next_batches(pass, ahead);
    if (batches.empty()) return;
    pass.context.check_cancelled();
    const std::vector<EngineValues> outputs = compute(pass, batches);
    pass.tally.keep();
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (options.on_outputs) {
        options.on_outputs(pass.session.leave(outputs[i]), batches[i].size);
      }
      pass.done += batches[i].size;
    }
    pass.context.report("calibrating", pass.done, pass.end);
    if (options.after_batch) {
      options.after_batch(pass.done, [&] { return pass.tally.statistics(); });
    }
  }
}

/// Fewer samples at a time than those of a batch that did not fit under the ceiling.
std::int64_t smaller_batch(const Pass& pass) {
  if (pass.running < 2) {
    fail(ErrorKind::Unsupported,
         "one sample does not fit under the ceiling of {} MB of memory; take a higher "
         "--max-memory",
         pass.context.max_memory_mb);
  }
  const std::int64_t size = (pass.running + 1) / 2;
  pass.context.warn(format("--max-memory is too small for {} samples at a time: {} are taken",
                           pass.running, size));
  return size;
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
  // Likewise of a batch that did not fit.
  if (context.max_memory_mb > 0 && options.on_other && fixed == 0) size = 1;
  Pass pass{.session = session,
            .tally = tally,
            .options = options,
            .context = context,
            .end = options.first + count,
            .done = options.first};
  for (bool all = false; !all;) {
    data::Slice slice(source, pass.done, pass.end - pass.done);
    BatchReader reader(slice, size, context, unlike);
    try {
      run_batches(pass, reader);
      all = true;
    } catch (const Error& error) {
      tally.discard();
      if (pass.together > 1 && says_full(error)) continue;  // the session now takes fewer together
      if (!wants_less(error, context) || (fixed > 0 && pass.running > 1)) throw;
      size = smaller_batch(pass);
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
    return observe::to_message(collect_here(model, values, source, own, context));
  });
  StatisticMap statistics;
  for (const Bytes& part : found) append(statistics, observe::from_message(part));
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
      ranks, kWhat, [&] { return observe::to_message(statistics); },
      [&](const Bytes& part) { append(statistics, observe::from_message(part)); });
  Bytes all;
  if (ranks.rank() == 0) all = observe::to_message(statistics);
  all = broadcast(ranks, kWhat, std::move(all));
  return ranks.rank() == 0 ? statistics : observe::from_message(all);
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
  return sharers(context) != nullptr && !watched
             ? collect_together(model, values, source, options, context)
             : collect_here(model, values, source, options, context);
}

}  // namespace quench::calibrate
