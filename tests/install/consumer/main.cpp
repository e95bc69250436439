// SPDX-License-Identifier: Apache-2.0
// A user's program: sees every public header, makes a tensor, and gets an error as promised.
#include <quench/context.h>
#include <quench/data.h>
#include <quench/dtype.h>
#include <quench/error.h>
#include <quench/evaluate.h>
#include <quench/graph.h>
#include <quench/metrics.h>
#include <quench/model.h>
#include <quench/session.h>
#include <quench/tensor.h>

#include <iostream>

int main() {
  const auto tensor = quench::Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  std::cout << quench::name_of(tensor.dtype()) << "[" << quench::to_string(tensor.shape()) << "]\n";
  try {
    quench::load("no_such_model.onnx");
  } catch (const quench::Error& error) {
    std::cout << quench::name_of(error.kind()) << ": " << error.what() << "\n";
    return 0;
  }
  std::cerr << "a missing model was loaded\n";
  return 1;
}
