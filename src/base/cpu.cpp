// SPDX-License-Identifier: Apache-2.0
// Asks the processor, and keeps the cap.
#include "base/cpu.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/format.h"

namespace quench {
namespace {

struct Row {
  Isa isa;
  std::string_view name;
};
constexpr std::array kRows = {Row{Isa::Portable, "portable"}, Row{Isa::Avx2, "avx2"},
                              Row{Isa::Avx512, "avx512"}, Row{Isa::Vnni, "vnni"},
                              Row{Isa::Vbmi, "vbmi"}};

std::atomic<int> cap = static_cast<int>(Isa::Vbmi);

Isa ask_processor() noexcept {
#if defined(QUENCH_X86)
  if (!__builtin_cpu_supports("avx2")) return Isa::Portable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("fma");
  if (!avx512) return Isa::Avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::Avx512;
  return __builtin_cpu_supports("avx512vbmi") ? Isa::Vbmi : Isa::Vnni;
#else
  return Isa::Portable;
#endif
}

}  // namespace

namespace cpu {
std::atomic<int> level = -1;
}  // namespace cpu

std::span<const Isa> all_isas() noexcept {
  static constexpr std::array kAll = {Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Vnni, Isa::Vbmi};
  return kAll;
}

std::string_view to_string(Isa isa) noexcept { return kRows[static_cast<std::size_t>(isa)].name; }

Isa isa_named(std::string_view name) {
  const auto* const found = std::ranges::find(kRows, name, &Row::name);
  if (found != kRows.end()) return found->isa;
  std::vector<std::string_view> known;
  for (const Row& row : kRows) known.push_back(row.name);
  fail(ErrorKind::Usage, "there is no instruction set '{}'; expected {}", name,
       fmt::join(known, ", "));
}

Isa machine_isa() noexcept {
  static const Isa kFound = ask_processor();
  return kFound;
}

Isa max_isa() noexcept { return static_cast<Isa>(cap.load(std::memory_order_relaxed)); }

void set_max_isa(Isa isa) noexcept {
  cap.store(static_cast<int>(isa), std::memory_order_relaxed);
  cpu::level.store(static_cast<int>(std::min(isa, machine_isa())), std::memory_order_relaxed);
}

Isa used_isa() noexcept {
  const int known = cpu::level.load(std::memory_order_relaxed);
  if (known >= 0) return static_cast<Isa>(known);
  const Isa found = std::min(max_isa(), machine_isa());
  cpu::level.store(static_cast<int>(found), std::memory_order_relaxed);
  return found;
}

}  // namespace quench
