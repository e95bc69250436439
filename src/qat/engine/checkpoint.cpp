// SPDX-License-Identifier: Apache-2.0
// Checkpoints, in libtorch's own archives.
#include "qat/engine/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/format.h"

namespace quench::qat {
namespace {

constexpr const char* kVersion = "quench training 1";

void write_tensors(torch::serialize::OutputArchive& archive, const std::string& name,
                   const std::vector<at::Tensor>& tensors) {
  archive.write(name + "/count", c10::IValue(static_cast<std::int64_t>(tensors.size())));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    archive.write(format("{}/{}", name, i), tensors[i].detach().to(at::kCPU), /*is_buffer=*/true);
  }
}

std::vector<at::Tensor> read_tensors(torch::serialize::InputArchive& archive,
                                     const std::string& name) {
  c10::IValue count;
  archive.read(name + "/count", count);
  std::vector<at::Tensor> tensors(static_cast<std::size_t>(count.toInt()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    archive.read(format("{}/{}", name, i), tensors[i], /*is_buffer=*/true);
  }
  return tensors;
}

/// The curve and the numbers of a report, as a table.
at::Tensor curve_tensor(const TrainingReport& report) {
  at::Tensor table = at::empty({static_cast<std::int64_t>(report.curve.size()), 4}, at::kDouble);
  for (std::size_t i = 0; i < report.curve.size(); ++i) {
    const TrainingPoint& point = report.curve[i];
    double* row = table.data_ptr<double>() + 4 * i;
    row[0] = static_cast<double>(point.step);
    row[1] = point.loss;
    row[2] = point.rate;
    row[3] = point.score.value_or(std::nan(""));
  }
  return table;
}

void read_curve(const at::Tensor& table, TrainingReport& report) {
  report.curve.clear();
  for (std::int64_t i = 0; i < table.size(0); ++i) {
    const double* row = table.data_ptr<double>() + 4 * i;
    report.curve.push_back(
        {.step = static_cast<std::int64_t>(row[0]), .loss = row[1], .rate = row[2]});
    if (!std::isnan(row[3])) report.curve.back().score = row[3];
  }
}

std::string read_text(torch::serialize::InputArchive& archive, const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value.toStringRef();
}

void read_all(torch::serialize::InputArchive& archive, CheckpointParts& parts) {
  const auto number = [&](const char* key) {
    c10::IValue value;
    archive.read(key, value);
    return value;
  };
  parts.step = number("step").toInt();
  parts.validated = number("validated").toInt();
  parts.without_gain = number("without_gain").toInt();
  parts.best = number("best").toDouble();
  parts.report.best_step = number("best_step").toInt();
  at::Tensor curve;
  archive.read("curve", curve, /*is_buffer=*/true);
  read_curve(curve, parts.report);
  restore(read_tensors(archive, "state"), parts.state);
  parts.best_state = read_tensors(archive, "best_state");
  torch::serialize::InputArchive optimizer;
  archive.read("optimizer", optimizer);
  parts.optimizer->load(optimizer);
}

}  // namespace

void restore(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  if (from.size() != to.size())
    fail(ErrorKind::BadData, "it has {} tensors, not {}", from.size(), to.size());
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < from.size(); ++i) {
    at::Tensor target = to[i].detach();
    if (target.sizes() != from[i].sizes()) target.resize_(from[i].sizes());
    target.copy_(from[i]);
  }
}

void save_checkpoint(const std::string& path, const std::string& origin,
                     const CheckpointParts& parts) {
  torch::serialize::OutputArchive archive;
  archive.write("version", c10::IValue(std::string(kVersion)));
  archive.write("origin", c10::IValue(origin));
  archive.write("step", c10::IValue(parts.step));
  archive.write("validated", c10::IValue(parts.validated));
  archive.write("without_gain", c10::IValue(parts.without_gain));
  archive.write("best", c10::IValue(parts.best));
  archive.write("best_step", c10::IValue(parts.report.best_step));
  archive.write("curve", curve_tensor(parts.report), /*is_buffer=*/true);
  write_tensors(archive, "state", parts.state);
  write_tensors(archive, "best_state", parts.best_state);
  torch::serialize::OutputArchive optimizer(archive.compilation_unit());
  parts.optimizer->save(optimizer);
  archive.write("optimizer", optimizer);
  std::ostringstream bytes;
  archive.save_to(bytes);
  write_text(path, bytes.str());
}

bool load_checkpoint(const std::string& path, const std::string& origin, CheckpointParts& parts) {
  if (!std::filesystem::exists(path)) return false;
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(path);
    if (read_text(archive, "version") != kVersion) {
      fail(ErrorKind::BadData, "'{}' is no checkpoint of this version", path);
    }
    if (read_text(archive, "origin") != origin) {
      fail(ErrorKind::BadData,
           "the checkpoint '{}' is of another model or other settings; train without --resume, or "
           "give "
           "another --checkpoint",
           path);
    }
    read_all(archive, parts);
  } catch (const c10::Error& error) {
    fail(ErrorKind::BadData, "'{}' is no checkpoint, or it is damaged: {}", path,
         std::string(error.what_without_backtrace()).substr(0, 120));
  }
  return true;
}

}  // namespace quench::qat
