// SPDX-License-Identifier: Apache-2.0
// The data pass by itself: statistics into a file, with snapshots that an interrupted pass goes on
// from.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
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

/// Data that grew or changed at their beginning are not the same data.
Identity identity_of(const job::Job& job) {
  Fingerprint data;
  data.add(job.samples.source().size());
  data.add(job.samples.source().read(0).inputs);
  return {.model = job.origin, .data = data.text(), .settings = settings_json(job.options)};
}

/// Statistics of the samples before `done`, on disk beside the result.
class Snapshot {
 public:
  Snapshot(std::string path, Identity identity, SampleSource& source)
      : path_(std::move(path)), identity_(std::move(identity)), source_(source) {}

  /// What was seen before, where there is a snapshot of this very pass.
  std::int64_t resume(StatisticMap& seen) const {
    std::error_code error;
    if (!std::filesystem::exists(path_, error)) return 0;
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
                     const ResumeOptions& resume) {
  with_outputs([&](Outputs& outputs) {
    calibrate_model(model_path, statistics_path, options, context, resume, outputs);
  });
}

void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context,
                     const ResumeOptions& resume, Outputs& outputs) {
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
  const Snapshot snapshot(statistics_path + ".partial", identity_of(job), source);
  StatisticMap seen;
  const std::int64_t done = resume.resume ? snapshot.resume(seen) : 0;
  if (done > 0) context.info(format("calibrate: going on after {} samples", done));
  Keeper keeper(snapshot, resume.snapshot_seconds);
  calibrate::CollectOptions collect{
      .batch = options.batch, .first = done, .count = job.samples.calibration().count - done};
  collect.seen = std::move(seen);
  collect.after_batch = [&](std::int64_t now, const std::function<StatisticMap()>& statistics) {
    keeper.after_batch(now, statistics);
  };
  job.statistics =
      calibrate::collect(job.model, job::values_to_observe(job), source, collect, context);
  save_statistics(job.statistics, statistics_path, job::statistics_note(job));
  outputs.removes(statistics_path + ".partial");
}

}  // namespace quench
