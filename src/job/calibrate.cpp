// SPDX-License-Identifier: Apache-2.0
// The data pass by itself: statistics into a file, with snapshots that an interrupted pass goes on
// from.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/share.h"
#include "calibrate/collect.h"
#include "formats/fingerprint.h"
#include "job/job.h"
#include "job/job_files.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

/// What a snapshot must agree in with the pass that goes on from it, with words for each.
struct Identity {
  std::string model;
  std::string data;
  std::string settings;
};

Identity identity_of(const job::Job& job) {
  return {.model = job.origin,
          .data = evaluation::identity_of(job.samples.source()),
          .settings = settings_json(job.options)};
}

/// Statistics of the samples before `done`, on disk beside the result.
class Snapshot {
 public:
  Snapshot(std::string path, Identity identity, SampleSource& source, std::int64_t first)
      : path_(std::move(path)), identity_(std::move(identity)), source_(source), first_(first) {}

  /// What was seen before, where there is a snapshot of this very pass.
  std::int64_t resume(StatisticMap& seen) const {
    std::error_code error;
    if (!std::filesystem::exists(path_, error)) return first_;
    std::string text;
    seen = load_statistics(path_, &text);
    const Json note = Json::parse(text, nullptr, false);
    const bool whole = note.is_object() && note.contains("done") &&
                       note["done"].is_number_integer() && note.contains("last");
    if (!whole) fail(ErrorKind::BadData, "{} is not a snapshot; remove it", path_);
    const auto done = note["done"].get<std::int64_t>();
    expect(note, "model", identity_.model);
    expect(note, "settings", identity_.settings);
    expect(note, "data", identity_.data);
    if (done < 1 || done > source_.size()) {
      fail(ErrorKind::BadData, "{} speaks of {} samples, there are {}", path_, done,
           source_.size());
    }
    expect(note, "data", identity_.data);
    if (note["last"] != sample_text(done - 1)) refuse("data");
    return done;
  }

  void save(std::int64_t done, const StatisticMap& statistics) const {
    const Json note = {{"model", identity_.model},
                       {"data", identity_.data},
                       {"settings", identity_.settings},
                       {"last", sample_text(done - 1)},
                       {"done", done}};
    save_statistics(statistics, path_, note.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

 private:
  std::string sample_text(std::int64_t index) const {
    Fingerprint sample;
    sample.add(source_.read(index).inputs);
    return sample.text();
  }
  void expect(const Json& note, const char* key, const std::string& value) const {
    if (!note.contains(key) || note[key] != value) refuse(key);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::BadData,
         "{} was made with other {} than this run; remove it, or calibrate without --resume", path_,
         what);
  }

  std::string path_;
  Identity identity_;
  SampleSource& source_;
  std::int64_t first_;  ///< of the pass
};

/// Writes a snapshot when the last one is old enough.
class Keeper {
 public:
  Keeper(const Snapshot& snapshot, double seconds) : snapshot_(snapshot), seconds_(seconds) {}
  void after_batch(std::int64_t done, const std::function<StatisticMap()>& statistics) {
    if (std::chrono::duration<double>(Clock::now() - last_).count() < seconds_) return;
    snapshot_.save(done, statistics());
    last_ = Clock::now();
  }

 private:
  const Snapshot& snapshot_;
  double seconds_;
  Clock::time_point last_ = Clock::now();
};

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
  job::prepare(job);
  job::plan(job);
  if (!job.samples.any()) {
    fail(ErrorKind::Usage, "calibration needs samples: give --data");
  }
  if (const auto doubt = job::doubt_samples(job)) context.warn(*doubt);
  SampleSource& source = job.samples.source();
  const Share share = samples_of(job, how);
  Identity identity = identity_of(job);
  if (how.shards > 1) identity.settings += format(" part {} of {}", how.shard, how.shards);
  const Snapshot snapshot(statistics_path + ".partial", std::move(identity), source, share.first);
  StatisticMap seen;
  const std::int64_t done = how.resume ? snapshot.resume(seen) : share.first;
  if (done > share.first) {
    context.info(format("calibrate: going on after {} samples", done - share.first));
  }
  Keeper keeper(snapshot, how.snapshot_seconds);
  calibrate::CollectOptions collect{
      .batch = options.batch, .first = done, .count = share.first + share.count - done};
  collect.seen = std::move(seen);
  // Ranks share the pass, and none of them has seen all that lies before a batch.
  if (!context.ranks) {
    collect.after_batch = [&](std::int64_t now, const std::function<StatisticMap()>& statistics) {
      keeper.after_batch(now, statistics);
    };
  }
  job.statistics =
      calibrate::collect(job.model, job::values_to_observe(job), source, collect, context);
  if (!context.writes()) return;
  save_statistics(job.statistics, statistics_path, job::statistics_note(job, share.count));
  outputs.removes(statistics_path + ".partial");
}

}  // namespace quench
