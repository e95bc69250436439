// SPDX-License-Identifier: Apache-2.0
// Remembers which folders were not there before.
#include "base/made_folder.h"

#include "base/file.h"

namespace quench {

namespace fs = std::filesystem;

MadeFolder::MadeFolder(const std::string& path, bool stays) {
  if (path.empty()) return;
  std::error_code error;
  fs::path each = fs::absolute(path, error).lexically_normal();
  if (!each.has_filename()) each = each.parent_path();  // it ended in a slash
  for (; each.has_relative_path() && !fs::exists(each, error); each = each.parent_path()) {
    made_.push_back(each);
  }
  try {
    make_folder(path);
  } catch (...) {
    for (const fs::path& folder : made_) fs::remove(folder, error);
    throw;
  }
  if (stays) made_.clear();
}

MadeFolder::~MadeFolder() {
  std::error_code ignored;  // a folder that holds something, such as a staged file, stays
  for (const fs::path& folder : made_) fs::remove(folder, ignored);
}

}  // namespace quench
