// SPDX-License-Identifier: Apache-2.0
// TensorFlow's row in the table of formats.
#include <algorithm>
#include <cctype>

#include "formats/registry.h"
#include "formats/tensorflow/file.h"
#include "formats/tensorflow/rows.h"

namespace quench {
namespace tensorflow {
namespace {

/// The text of a field at the front, one byte of length; "": there is none.
std::string_view text_of(std::string_view bytes, char tag) noexcept {
  if (bytes.size() < 2 || bytes[0] != tag) return {};
  const auto size = static_cast<unsigned char>(bytes[1]);
  if (size >= 0x80U || size + 2U > bytes.size()) return {};
  return bytes.substr(2, size);
}

std::string_view as_text(std::span<const std::byte> file) noexcept {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Behind a tag, the message, whose length may take several bytes.
std::string_view message_of(std::string_view bytes, char tag) noexcept {
  if (bytes.size() < 2 || bytes[0] != tag) return {};
  std::size_t at = 1;
  while (at < bytes.size() && at < 6 && (static_cast<unsigned char>(bytes[at]) & 0x80U) != 0) ++at;
  return bytes.substr(std::min(at + 1, bytes.size()));
}

}  // namespace

/// A node: its name, then an operator, which is called as no other format calls anything there.
bool is_graph(std::span<const std::byte> file) noexcept {
  if (is_saved_model(file)) return true;
  const std::string_view node = message_of(as_text(file), '\x0a');
  const std::string_view name = text_of(node, '\x0a');
  if (name.empty()) return false;
  const std::string_view op = text_of(node.substr(name.size() + 2), '\x12');
  const auto letter = [](char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0; };
  return !op.empty() && (std::isupper(static_cast<unsigned char>(op[0])) != 0 || op[0] == '_') &&
         std::all_of(op.begin() + 1, op.end(), letter);
}

/// A version, then a graph with its head (field 1) first.
bool is_saved_model(std::span<const std::byte> file) noexcept {
  const std::string_view bytes = as_text(file);
  return bytes.size() > 8 && bytes.substr(0, 3) == std::string_view("\x08\x01\x12") &&
         message_of(bytes.substr(2), '\x12').starts_with('\x0a');
}

}  // namespace tensorflow

namespace {

bool sniff(std::span<const std::byte> file) { return tensorflow::is_graph(file); }

Model read(const ModelFiles& /*files*/, const std::shared_ptr<const MappedFile>& file) {
  return tensorflow::read_bytes(file->bytes());
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const tensorflow::OpRow* row : tensorflow::all_rows()) names.emplace_back(row->name);
  return names;
}

}  // namespace

FormatInfo tf_format() {
  return {.name = "tf",
          .summary = "frozen TensorFlow graphs (GraphDef); read only",
          .extension = ".pb",
          .sniff = sniff,
          .read = read,
          .data_files = nullptr,
          .own_data_file = nullptr,
          .stage = nullptr,
          .operators = operators};
}

}  // namespace quench
