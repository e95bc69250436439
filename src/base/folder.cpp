// SPDX-License-Identifier: Apache-2.0
// Folders and small text files.
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "quench/files.h"

namespace quench {

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    fail(ErrorKind::Io, "the folder '{}' cannot be made: {}", path,
         error ? error.message() : "a file of that name is there");
  }
  const AtomicFile probe((std::filesystem::path(path) / ".probe").string());
}

void write_text(const std::string& path, std::string_view text) {
  Outputs outputs;
  write_text(path, text, outputs);
  outputs.commit();
}

std::string on_one_line(std::string_view name) {
  std::string line(name);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return line;
}

}  // namespace quench
