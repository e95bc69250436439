// SPDX-License-Identifier: Apache-2.0
// Snapshots of a pass: which pass they are of is checked, key by key.
#include "calibrate/snapshot.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "formats/fingerprint.h"

namespace quench::calibrate {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::int64_t Snapshot::resume(StatisticMap& seen) const {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return first_;
  std::string text;
  seen = load_statistics(path_, &text);
  const Json note = Json::parse(text, nullptr, false);
  const bool whole = note.is_object() && note.contains("done") &&
                     note["done"].is_number_integer() && note.contains("last");
  if (!whole) fail(ErrorKind::BadData, "{} is not a snapshot; remove it", path_);
  const auto done = note["done"].get<std::int64_t>();
  const std::array<std::pair<const char*, const std::string*>, 3> wanted = {
      {{"model", &identity_.model}, {"settings", &identity_.settings}, {"data", &identity_.data}}};
  for (const auto& [key, value] : wanted) {
    if (!note.contains(key) || note[key] != *value) refuse(key);
  }
  if (done < 1 || done > source_.size()) {
    fail(ErrorKind::BadData, "{} speaks of {} samples, there are {}", path_, done, source_.size());
  }
  if (note["last"] != sample_text(done - 1)) refuse("data");
  return done;
}

void Snapshot::save(std::int64_t done, const StatisticMap& statistics) const {
  const Json note = {{"model", identity_.model},
                     {"data", identity_.data},
                     {"settings", identity_.settings},
                     {"last", sample_text(done - 1)},
                     {"done", done}};
  save_statistics(statistics, path_, note.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string Snapshot::sample_text(std::int64_t index) const {
  Fingerprint sample;
  sample.add(source_.read(index).inputs);
  return sample.text();
}

void Snapshot::refuse(std::string_view what) const {
  fail(ErrorKind::BadData,
       "{} was made with other {} than this run; remove it, or calibrate without --resume", path_,
       what);
}

void SnapshotKeeper::after_batch(std::int64_t done,
                                 const std::function<StatisticMap()>& statistics) {
  if (std::chrono::duration<double>(Clock::now() - last_).count() < seconds_) return;
  snapshot_.save(done, statistics());
  last_ = Clock::now();
}

}  // namespace quench::calibrate
