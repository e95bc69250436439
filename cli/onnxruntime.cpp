// SPDX-License-Identifier: Apache-2.0
// Times a model in ONNX Runtime, in a Python process of its own.
#include "cli/onnxruntime.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/json.h"
#include "quench/error.h"

namespace quench::cli {
namespace {

constexpr int kNotInstalled = 42;

/// The same inputs, loop and keys as quench bench's own.
constexpr const char* kProgram = R"python(
import json, sys, time
try:
    import numpy, onnxruntime
except ImportError:
    sys.exit(42)
path, batch, threads, warmup, runs, limit, shapes = json.loads(sys.argv[1])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.log_severity_level = 3
def memory(key):
    return int(next(line for line in open("/proc/self/status") if line.startswith(key)).split()[1])
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
start = time.perf_counter()
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
load = (time.perf_counter() - start) * 1000
kinds = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8",
         "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(uint8)": "u1", "tensor(int8)": "i1",
         "tensor(bool)": "?"}
random = numpy.random.default_rng(1)
feeds = {}
for value in session.get_inputs():
    shape = shapes.get(value.name) or [
        size if isinstance(size, int) else (batch if axis == 0 else 1)
        for axis, size in enumerate(value.shape)]
    kind = kinds[value.type]
    feeds[value.name] = (random.standard_normal(shape) if kind[0] == "f"
                         else random.integers(0, 2, shape)).astype(kind)
for _ in range(warmup):
    session.run(None, feeds)
times = []
start = time.perf_counter()
while len(times) < runs and (len(times) < 3 or time.perf_counter() - start < limit):
    begin = time.perf_counter()
    session.run(None, feeds)
    times.append((time.perf_counter() - begin) * 1000)
times.sort()
print(json.dumps({"runs": len(times), "median_ms": float(numpy.median(times)),
                  "p95_ms": times[max(-(-95 * len(times) // 100), 1) - 1], "min_ms": times[0],
                  "load_ms": load, "peak_rss_mb": (memory("VmHWM") - before) / 1024,
                  "batch": next((f.shape[0] for f in feeds.values() if f.ndim), batch)}))
)python";

struct Child {
  std::string output;
  int status = 0;
};

std::string drain(int descriptor) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  ::close(descriptor);
  return text;
}

/// Runs the interpreter with its stdout in a pipe; its stderr is ours.
Child run_python(const std::string& python, const std::string& request) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw Error(ErrorKind::Io, "bench: cannot open a pipe");
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorKind::Io, "bench: cannot start a process");
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    const std::array<const char*, 5> words = {python.c_str(), "-c", kProgram, request.c_str(),
                                              nullptr};
    ::execvp(words[0], const_cast<char* const*>(words.data()));
    ::_exit(127);
  }
  ::close(ends[1]);
  Child result{.output = drain(ends[0])};
  while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

[[noreturn]] void explain(const std::string& python, const std::string& model, int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127) {
    throw Error(ErrorKind::Unsupported, "--runtime onnxruntime needs a Python interpreter, and '" +
                                            python + "' cannot be started; name one with --python");
  }
  if (code == kNotInstalled) {
    throw Error(ErrorKind::Unsupported, "ONNX Runtime is not installed for '" + python +
                                            "'; install onnxruntime and numpy there, or name "
                                            "another interpreter with --python");
  }
  throw Error(ErrorKind::BadData, "ONNX Runtime could not run '" + model + "'; see above");
}

}  // namespace

BenchResult bench_onnxruntime(const std::string& model, const BenchOptions& options,
                              const std::string& python, int threads) {
  const Json request = {model,        options.batch,       threads,       options.warmup,
                        options.runs, options.max_seconds, options.shapes};
  const Child child = run_python(python, request.dump());
  if (child.status != 0) explain(python, model, child.status);
  const Json got = Json::parse(child.output, nullptr, false);
  if (got.is_discarded()) explain(python, model, -1);
  BenchResult result;
  result.model = model + " (onnxruntime)";
  result.batch = got.at("batch");
  result.threads = threads;
  result.runs = got.at("runs");
  result.median_ms = got.at("median_ms");
  result.p95_ms = got.at("p95_ms");
  result.min_ms = got.at("min_ms");
  result.load_ms = got.at("load_ms");
  result.peak_rss_mb = got.at("peak_rss_mb");
  result.samples_per_second = 1000.0 * static_cast<double>(result.batch) / result.median_ms;
  return result;
}

}  // namespace quench::cli
