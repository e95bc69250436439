// SPDX-License-Identifier: Apache-2.0
// What the tests of data share: a folder of their own, small files, and errors looked at by text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/error.h"
#include "support/temp_folder.h"

namespace quench::testing {

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model input; a dimension of -1 is open.
inline Value input(const std::string& name, DType dtype, const Shape& shape) {
  std::vector<Dim> dims;
  for (const std::int64_t size : shape) dims.push_back({size, size < 0 ? "N" : ""});
  Value value;
  value.name = name;
  value.type = ValueType::tensor(dtype, dims);
  return value;
}

/// Runs `body`, expects an Error of `kind`, and returns its text.
template <typename Body>
std::string error_of(ErrorKind kind, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.kind()), std::string(name_of(kind))) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

inline std::vector<float> floats(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

}  // namespace quench::testing
