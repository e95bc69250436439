// SPDX-License-Identifier: Apache-2.0
// Values of all samples.
#include "qat/engine/cache.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/format.h"

namespace quench::qat {
namespace {

/// Above this a file that has no name any more holds them: the system keeps in memory what fits.
constexpr std::int64_t kMostInMemory = std::int64_t{1} << 29;

at::Tensor in_file(const std::vector<std::int64_t>& shape, std::int64_t elements) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::string path = (folder / "quench-cache-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) fail(ErrorKind::Io, "cannot make a temporary file in '{}'", folder.string());
  ::close(descriptor);
  at::Tensor tensor = at::from_file(path, /*shared=*/true, elements, at::kFloat);
  std::filesystem::remove(path);
  return tensor.reshape(shape);
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
    all_ = large ? in_file(shape, elements) : at::empty(shape);
  }
  all_.narrow(0, first, rows.size(0)).copy_(rows);
}

at::Tensor Cache::pick(const std::vector<std::int64_t>& samples) const {
  return at::index_select(all_, 0, at::tensor(at::ArrayRef<std::int64_t>(samples), at::kLong));
}

}  // namespace quench::qat
