// SPDX-License-Identifier: Apache-2.0
// The demo's network and images, quantised in steps.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "quench/error.h"
#include "quench/ptq.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace quench::testing::fashion {

inline std::string data_folder() { return (testing::source_dir() / "examples/data").string(); }
inline std::string float_path() { return data_folder() + "/fashion.onnx"; }

inline std::string out_path(const std::string& name) {
  static const TempFolder folder;
  return folder.path(name + ".onnx");
}

inline DataOptions samples(std::int64_t limit) {
  DataOptions data;
  data.path = data_folder() + "/fashion-test-images-idx3-ubyte.gz";
  data.limit = limit;
  data.image.mean = {72.9};
  data.image.std = {90};
  return data;
}

inline Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  context.module_dir = testing::binary_dir().string();
  return context;
}

inline void feed(ObservedModel& observed, std::int64_t batch, std::int64_t limit = 29) {
  const auto source = open_data(samples(limit), observed.inputs());
  BatchReader reader(*source, batch);
  while (const auto each = reader.next()) observed.run(each->inputs);
}

inline Model flow(const QuantConfig& config, std::int64_t batch = 4, int threads = 1) {
  const PTQ ptq(config, with_threads(threads));
  ObservedModel observed = ptq.quantize(load(float_path()));
  feed(observed, batch);
  return ptq.convert(observed);
}

/// The file's bytes, without notes on how it was made.
inline std::string bytes_of(Model model) {
  model.metadata.clear();
  const std::string path = out_path("bytes");
  save(model, path);
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

inline QuantConfig with_observer(const std::string& name) {
  QuantConfig config;
  config.global.activation_observer = name;
  return config;
}

inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_in(const std::string& part, const std::string& whole) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole;
}

}  // namespace quench::testing::fashion
