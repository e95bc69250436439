// SPDX-License-Identifier: Apache-2.0
// Reads models and writes them again: quench_roundtrip [IN OUT]..., or one pair a line on stdin.
#include <iostream>
#include <string>

#include "quench/error.h"
#include "quench/model.h"

namespace {

/// Says what went wrong on one line, so that a script can go on with the next model.
bool round_trip(const std::string& in, const std::string& out) {
  try {
    const quench::Model model = quench::load(in);
    quench::save(model, out);
    const quench::Model again = quench::load(out);
    if (dump(model) != dump(again))
      throw quench::Error(quench::ErrorKind::Internal, "dump differs");
    std::cout << "ok\t" << in << '\n';
    return true;
  } catch (const quench::Error& error) {
    std::cout << "failed\t" << in << '\t' << error.what() << '\n';
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool good = true;
  for (int i = 1; i + 1 < argc; i += 2) good = round_trip(argv[i], argv[i + 1]) && good;
  if (argc > 1) return good ? 0 : 1;
  std::string in;
  std::string out;
  while (std::getline(std::cin, in) && std::getline(std::cin, out))
    good = round_trip(in, out) && good;
  return good ? 0 : 1;
}
