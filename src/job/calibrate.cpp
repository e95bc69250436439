// SPDX-License-Identifier: Apache-2.0
// The data pass by itself: statistics into a file, with snapshots that an interrupted pass goes on
// from.
#include "base/format.h"
#include "base/share.h"
#include "calibrate/collect.h"
#include "calibrate/snapshot.h"
#include "job/job.h"
#include "job/job_files.h"
#include "job/shards.h"

namespace quench {
namespace {

calibrate::PassIdentity identity_of(const job::Job& job) {
  return {.model = job.origin,
          .data = evaluation::identity_of(job.samples.source()),
          .settings = settings_json(job.options)};
}

}  // namespace

void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context,
                     const CalibrateOptions& how) {
  with_outputs([&](Outputs& outputs) {
    calibrate_model(model_path, statistics_path, options, context, how, outputs);
  });
}

namespace {

void check(const CalibrateOptions& how, const Context& context) {
  if (how.shards < 1 || how.shard < 1 || how.shard > how.shards) {
    fail(ErrorKind::Usage, "there is no part {} of {}; parts are counted from 1", how.shard,
         how.shards);
  }
  if (context.ranks && how.resume) {
    fail(ErrorKind::Usage, "--resume is for a pass of one process; leave out --distributed");
  }
}

/// The samples of the part that is asked for.
Share samples_of(const job::Job& job, const CalibrateOptions& how) {
  const std::int64_t all = job.samples.calibration().count;
  const Share share = share_of(all, job.samples.run_size(), how.shard - 1, how.shards);
  if (share.count > 0) return share;
  fail(ErrorKind::BadData, "part {} of {} has no samples: there are {}; take fewer parts",
       how.shard, how.shards, all);
}

}  // namespace

void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context,
                     const CalibrateOptions& how, Outputs& outputs) {
  check(how, context);
  if (!context.writes()) outputs.keep_nothing();
  reads_job(outputs, model_path, options);
  outputs.writes(statistics_path, "the statistics");
  outputs.writes(statistics_path + ".partial", "the snapshot");
  job::Job job(model_path, options, context);
  job.observes_any_choice = true;
  job::start_shards(job, statistics_path);
  job::prepare(job);
  job::check_shards(job);
  job::plan(job);
  if (!job.samples.any()) {
    fail(ErrorKind::Usage, "calibration needs samples: give --data");
  }
  const auto doubt = shards(context) != nullptr ? std::nullopt : job::doubt_samples(job);
  if (doubt) context.warn(*doubt);
  SampleSource& source = job.samples.source();
  const Share share = samples_of(job, how);
  calibrate::PassIdentity identity = identity_of(job);
  if (how.shards > 1) identity.settings += format(" part {} of {}", how.shard, how.shards);
  const calibrate::Snapshot snapshot(statistics_path + ".partial", std::move(identity), source,
                                     share.first);
  StatisticMap seen;
  const std::int64_t done = how.resume ? snapshot.resume(seen) : share.first;
  if (done > share.first) {
    context.info(format("calibrate: going on after {} samples", done - share.first));
  }
  calibrate::SnapshotKeeper keeper(snapshot, how.snapshot_seconds);
  calibrate::CollectOptions collect{
      .batch = options.batch, .first = done, .count = share.first + share.count - done};
  collect.seen = std::move(seen);
  // Ranks share the pass, and none of them has seen all that lies before a batch; of a split model
  // one cannot go on without the others.
  if (!context.ranks) {
    collect.after_batch = [&](std::int64_t now, const std::function<StatisticMap()>& statistics) {
      keeper.after_batch(now, statistics);
    };
  }
  job.statistics =
      calibrate::collect(job.model, job::values_to_observe(job), source, collect, context);
  job::meet_shards(job);
  if (!context.writes()) return;
  save_statistics(job.statistics, statistics_path, job::statistics_note(job, share.count));
  outputs.removes(statistics_path + ".partial");
}

}  // namespace quench
