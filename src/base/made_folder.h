// SPDX-License-Identifier: Apache-2.0
// The folder that a job's files go to: one that was made for nothing goes again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quench {

/// Makes a folder and those above it, as `make_folder` does. Where nothing lies in them when the
/// object goes, those that were made go too: a job that was refused leaves nothing.
class MadeFolder {
 public:
  /// Does nothing for an empty path. `stays`: another process of the same job will write there.
  explicit MadeFolder(const std::string& path, bool stays = false);
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

 private:
  std::vector<std::filesystem::path> made_;  ///< the innermost first
};

}  // namespace quench
