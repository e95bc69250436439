// SPDX-License-Identifier: Apache-2.0
// Values of all samples.
#include "qat/engine/cache.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "exec/device_error.h"

namespace quench::qat {
namespace {

/// Above this a file that has no name any more holds them: the system keeps in memory what fits.
constexpr std::int64_t kMostInMemory = std::int64_t{1} << 28;

at::Tensor in_file(std::int64_t elements) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::string path = (folder / "quench-cache-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) fail(ErrorKind::Io, "cannot make a temporary file in '{}'", folder.string());
  ::close(descriptor);
  at::Tensor tensor = at::from_file(path, /*shared=*/true, elements, at::kFloat);
  std::filesystem::remove(path);
  return tensor;
}

/// On a GPU three of them lie beside what a step of training makes.
constexpr std::int64_t kMostOnGpu = std::int64_t{1} << 31;

/// Images lie with their channels last: so convolutions take them without moving them.
at::Tensor laid_out(const at::Tensor& memory, const std::vector<std::int64_t>& shape) {
  if (shape.size() != 4) return memory.reshape(shape);
  return memory.reshape({shape[0], shape[2], shape[3], shape[1]}).permute({0, 3, 1, 2});
}

}  // namespace

void Cache::add(const at::Tensor& rows, std::int64_t count, std::int64_t samples,
                std::int64_t first) {
  if (rows.dim() == 0 || rows.size(0) != count || rows.scalar_type() != at::kFloat) {
    fail(ErrorKind::Unsupported,
         "the samples of a batch do not lie in rows between its layers: the model cannot be "
         "reconstructed; train it with --epochs");
  }
  if (!all_.defined()) {
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = samples;
    const std::int64_t elements = rows.numel() / rows.size(0) * samples;
    const bool large = elements * static_cast<std::int64_t>(sizeof(float)) > kMostInMemory;
    all_ = laid_out(large ? in_file(elements) : at::empty({elements}), shape);
  }
  all_.narrow(0, first, rows.size(0)).copy_(rows);
}

void Cache::keep_at(const exec::Placement& place) {
  const std::int64_t bytes = all_.numel() * static_cast<std::int64_t>(sizeof(float));
  if (!place.away() || bytes > kMostOnGpu) return;
  try {
    there_ = all_.to(place.device);
  } catch (const c10::Error& error) {
    if (!exec::gpu_is_full(error.what())) throw;
  }
}

at::Tensor Cache::pick(const std::vector<std::int64_t>& samples) const {
  if (there_.defined()) {
    const at::Tensor which = at::tensor(samples, at::kLong).to(there_.device());
    if (there_.dim() != 4) return there_.index_select(0, which);
    return there_.permute({0, 2, 3, 1}).index_select(0, which).permute({0, 3, 1, 2});
  }
  std::vector<std::int64_t> shape = all_.sizes().vec();
  shape[0] = static_cast<std::int64_t>(samples.size());
  at::Tensor rows = at::empty(shape, all_.options().memory_format(all_.suggest_memory_format()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    rows.select(0, static_cast<std::int64_t>(i)).copy_(all_.select(0, samples[i]));
  }
  return rows;
}

}  // namespace quench::qat
