// SPDX-License-Identifier: Apache-2.0
// --data and everything that says how samples are prepared.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "quench/data.h"

namespace quench::cli {

/// The flags as they were given; what was left out keeps the INI file's or the library's value.
struct DataFlags {
  std::string config;
  std::optional<std::string> path;
  std::optional<std::string> labels;
  std::optional<std::int64_t> limit;
  std::optional<std::string> color;
  std::optional<std::string> resize;
  std::optional<int> resize_shorter;
  std::optional<std::string> resize_fit;
  std::optional<std::string> method;
  std::optional<std::string> center_crop;
  std::optional<std::string> mean;
  std::optional<std::string> std;
  bool normalize_first = false;
};

void add_data_flags(CLI::App& app, DataFlags& flags);

/// The INI section, or else `base`, with the flags laid over it.
DataOptions data_options(const DataFlags& flags, DataOptions base = {});

}  // namespace quench::cli
