// SPDX-License-Identifier: Apache-2.0
// quench_bench_images MODEL FOLDER BATCH DEVICE PRECISION [SAMPLES]: images a second from the JPEG
// files of a folder, over and over, as ImageNet's networks want them: read and prepared alone, run
// alone from batches in memory, and both, one behind the other and with the next batch prepared and
// brought to the device meanwhile, as calibration and evaluation do. As JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/ahead.h"
#include "noise.h"
#include "quench/data.h"
#include "quench/model.h"
#include "quench/session.h"

namespace {

using Clock = std::chrono::steady_clock;
using quench::BatchReader;
using quench::EngineValues;
using quench::Session;

/// A folder of few images as a long data set.
class Repeated final : public quench::SampleSource {
 public:
  Repeated(quench::SampleSource& source, std::int64_t size) : source_(source), size_(size) {}
  std::int64_t size() const override { return size_; }
  bool has_labels() const override { return false; }
  quench::Sample read(std::int64_t index) override { return source_.read(index % source_.size()); }
  bool concurrent() const override { return source_.concurrent(); }

 private:
  quench::SampleSource& source_;
  std::int64_t size_;
};

template <typename Work>
void report(const char* what, std::int64_t samples, const Work& work) {
  const auto start = Clock::now();
  work();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf(" \"%s\": %.0f,", what, static_cast<double>(samples) / seconds);
  std::fflush(stdout);
}

quench::DataOptions imagenet(const char* folder) {
  quench::DataOptions options;
  options.path = folder;
  options.image.resize_shorter = 256;
  options.image.center_crop = quench::ImageSize{224, 224};
  options.image.mean = {123.675, 116.28, 103.53};
  options.image.std = {58.395, 57.12, 57.375};
  return options;
}

void run(Session& session, const EngineValues& values) {
  (void)session.leave(session.compute(values));
}

int measure(int count, char** words) {
  const std::int64_t batch = std::atoll(words[3]);
  quench::Context context;
  context.device = words[4];
  context.precision = words[5];
  const std::int64_t samples = count > 6 ? std::atoll(words[6]) : 40 * batch;
  Session session(quench::load(words[1]), {}, context);
  const auto folder = quench::open_data(imagenet(words[2]), session.inputs(), context);
  Repeated source(*folder, samples);
  const quench::TensorMap noise = quench::benchmarks::noise(session.inputs(), batch);
  for (int i = 0; i < 3; ++i) run(session, session.enter(noise));  // kernels are chosen
  std::printf("{\"threads\": %d, \"files\": %lld,", context.num_threads(),
              static_cast<long long>(folder->size()));
  report("read", samples, [&] {
    BatchReader reader(source, batch, context);
    while (reader.next()) {
    }
  });
  report("run", samples, [&] {
    for (std::int64_t i = 0; i < samples; i += batch) run(session, session.enter(noise));
  });
  report("in turn", samples, [&] {
    BatchReader reader(source, batch, context);
    while (const auto next = reader.next()) run(session, session.enter(next->inputs));
  });
  report("both", samples, [&] {
    BatchReader reader(source, batch, context);
    struct Entered {
      quench::TensorMap memory;
      EngineValues values;
    };
    quench::Ahead<Entered> ahead([&]() -> std::optional<Entered> {
      auto next = reader.next();
      if (!next) return std::nullopt;
      EngineValues values = session.enter(next->inputs);
      return Entered{std::move(next->inputs), std::move(values)};
    });
    while (const auto next = ahead.next()) run(session, next->values);
  });
  std::printf(" \"batch\": %lld}\n", static_cast<long long>(batch));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s MODEL FOLDER BATCH DEVICE PRECISION [SAMPLES]\n", argv[0]);
    return 2;
  }
  (void)::setenv("GOMP_SPINCOUNT", "1000", 0);  // as the program does: readers want the cores too
  try {
    return measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
