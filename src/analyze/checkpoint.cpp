// SPDX-License-Identifier: Apache-2.0
// Scores as a file, so that a killed analysis can go on.
#include "analyze/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "base/share.h"

namespace quench::analyze {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(ErrorKind::BadData, "{}: {}; remove it or run without --resume", path, why);
}

/// JSON has no infinities.
Json to_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double from_number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

Scores scores_of(const Json& layers) {
  Scores scores;
  for (const Json& layer : layers) {
    auto& list = scores[layer.at("name").get<std::string>()];
    for (const Json& each : layer.at("scores")) {
      list.push_back({.metric = from_number(each.at(0)),
                      .signal = from_number(each.at(1)),
                      .noise = from_number(each.at(2))});
    }
  }
  return scores;
}

}  // namespace

Checkpoint::Checkpoint(std::string path, ScoreOrigin origin, const Context& context)
    : path_(std::move(path)), origin_(std::move(origin)), context_(context) {}

Scores Checkpoint::load() const {
  if (!context_.ranks) return read();
  Scores scores;
  Packer packer;
  if (leads(context_)) {
    for (const auto& [name, list] : read()) {
      packer.put(name);
      packer.put_all(list);
    }
  }
  const Bytes bytes = broadcast(*context_.ranks, "the checkpoint", packer.take());
  for (Unpacker unpacker(bytes); !unpacker.at_end();) {
    const std::string name = unpacker.text();
    scores[name] = unpacker.all<SampleScore>();
  }
  return scores;
}

Scores Checkpoint::read() const {
  if (!std::filesystem::exists(path_)) return {};
  const Json json = Json::parse(read_text(path_), nullptr, false);
  try {
    if (json.is_discarded()) refuse(path_, "it is not a checkpoint of quench analyze");
    const Json& mark = json.at("fingerprint");
    for (const auto& [key, own] :
         {std::pair("model", &origin_.model), std::pair("data", &origin_.data),
          std::pair("settings", &origin_.settings)}) {
      if (mark.at(key).get<std::string>() != *own) {
        refuse(path_, format("it was made with another {}",
                             std::string_view(key) == "settings" ? "setting" : key));
      }
    }
    return scores_of(json.at("layers"));
  } catch (const Json::exception&) {
    refuse(path_, "it is damaged");
  }
}

void Checkpoint::save(const Scores& scores, bool now) {
  if (!leads(context_)) return;
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_ < std::chrono::seconds(1)) return;
  last_ = time;
  Json layers = Json::array();
  for (const auto& [name, list] : scores) {
    Json rows = Json::array();
    for (const SampleScore& each : list) {
      rows.push_back({to_number(each.metric), to_number(each.signal), to_number(each.noise)});
    }
    layers.push_back({{"name", name}, {"scores", std::move(rows)}});
  }
  const Json json = {
      {"fingerprint",
       {{"model", origin_.model}, {"data", origin_.data}, {"settings", origin_.settings}}},
      {"layers", std::move(layers)}};
  write_text(path_, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace quench::analyze
