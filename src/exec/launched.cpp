// SPDX-License-Identifier: Apache-2.0
// Which variables tell a process its rank.
#include "quench/launched.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/format.h"
#include "quench/error.h"

namespace quench {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPorts = 65535;
constexpr int kPort = 29500;

/// The variables of a process, with sentences about those that are wrong.
class Environment {
 public:
  explicit Environment(const Variables& look_up) : look_up_(look_up) {}

  bool has(const char* name) const { return look_up_(name).has_value(); }
  std::string text(const char* name) const { return look_up_(name).value_or(""); }

  int number(const char* name, int least, int most) const {
    const std::string given = text(name);
    int value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool whole = error == std::errc() && end == given.data() + given.size();
    if (whole && value >= least && value <= most) return value;
    if (given.empty()) fail(ErrorKind::Usage, "--distributed needs {} in the environment", name);
    fail(ErrorKind::Usage, "{} is '{}'; expected a number from {} to {}", name, given, least, most);
  }
  int number_or(const char* name, int least, int most, int otherwise) const {
    return has(name) ? number(name, least, most) : otherwise;
  }

  /// Rank and size by their names in one launcher's environment.
  void read_place(const char* rank, const char* size, RankOptions& options) const {
    options.size = number(size, 1, kMostRanks);
    options.rank = number(rank, 0, options.size - 1);
  }

 private:
  const Variables& look_up_;
};

/// The first machine of Slurm's list: "node[03-07,9],other" is node03.
std::string first_node(std::string_view list) {
  const std::size_t open = list.find_first_of("[,");
  std::string name(list.substr(0, open));
  if (open == std::string_view::npos || list[open] == ',') return name;
  const std::size_t end = list.find_first_of("-,]", open);
  return name + std::string(list.substr(open + 1, end - open - 1));
}

LaunchedRank by_torchrun(const Environment& environment) {
  LaunchedRank found;
  environment.read_place("RANK", "WORLD_SIZE", found.ranks);
  found.ranks.address = environment.text("MASTER_ADDR");
  if (found.ranks.address.empty()) found.ranks.address = "127.0.0.1";
  found.ranks.port = environment.number_or("MASTER_PORT", 1, kMostPorts, kPort);
  // torchrun itself listens at that port, and speaks the protocol of its own version.
  const bool taken = environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (taken) found.ranks.port += found.ranks.port < kMostPorts ? 1 : -1;
  found.local_rank = environment.number_or("LOCAL_RANK", 0, kMostRanks, 0);
  found.local_size = environment.number_or("LOCAL_WORLD_SIZE", 1, kMostRanks, 1);
  return found;
}

/// The names of one MPI for a process's place.
struct MpiNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr MpiNames kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
/// MPICH and what is made of it, such as Intel's.
constexpr MpiNames kMpich = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

LaunchedRank by_mpi(const Environment& environment, const MpiNames& names) {
  LaunchedRank found;
  environment.read_place(names.rank, names.size, found.ranks);
  found.local_rank = environment.number_or(names.local_rank, 0, kMostRanks, 0);
  found.local_size = environment.number_or(names.local_size, 1, kMostRanks, 1);
  found.ranks.address = environment.text("MASTER_ADDR");
  if (found.ranks.address.empty() && found.local_size == found.ranks.size) {
    found.ranks.address = "127.0.0.1";
  }
  if (found.ranks.address.empty()) {
    fail(ErrorKind::Usage,
         "MPI does not say which machine rank 0 is on: set MASTER_ADDR for all ranks "
         "(Open MPI: mpirun -x MASTER_ADDR=HOST; MPICH: mpiexec -genv MASTER_ADDR HOST)");
  }
  found.ranks.port = environment.number_or("MASTER_PORT", 1, kMostPorts, kPort);
  return found;
}

/// Jobs that share a machine, and steps of one job that run at once, have ports of their own: 37
/// steps of a job before they meet those of the next.
int slurm_port(const Environment& environment) {
  constexpr std::int64_t kFirst = 20000;
  constexpr std::int64_t kPorts = 20000;
  constexpr std::int64_t kSteps = 37;  // no divisor of kPorts: neighbouring jobs stay apart
  constexpr int kMost = 1 << 30;       // what is no step of srun has a number above
  const std::string text = environment.text("SLURM_STEP_ID");
  const bool numbered = !text.empty() && text.size() < 10;
  const std::int64_t step = numbered ? environment.number("SLURM_STEP_ID", 0, kMost) : 0;
  const std::int64_t job = environment.number_or("SLURM_JOB_ID", 0, kMost, 0);
  return static_cast<int>(kFirst + (job * kSteps + step) % kPorts);
}

LaunchedRank by_slurm(const Environment& environment) {
  LaunchedRank found;
  environment.read_place("SLURM_PROCID", "SLURM_NTASKS", found.ranks);
  found.local_rank = environment.number_or("SLURM_LOCALID", 0, kMostRanks, 0);
  found.local_size = environment.number_or("SLURM_NTASKS_PER_NODE", 1, kMostRanks, 1);
  found.ranks.address = environment.text("MASTER_ADDR");
  if (found.ranks.address.empty())
    found.ranks.address = first_node(environment.text("SLURM_STEP_NODELIST"));
  if (found.ranks.address.empty())
    found.ranks.address = first_node(environment.text("SLURM_JOB_NODELIST"));
  if (found.ranks.address.empty()) found.ranks.address = "127.0.0.1";
  found.ranks.port = environment.number_or("MASTER_PORT", 1, kMostPorts, slurm_port(environment));
  return found;
}

/// Whether the ranks are Slurm's, which may speak PMI to them. MPICH's mpiexec starts its helpers
/// by Slurm, and those have other numbers than ranks.
bool slurm_counts(const Environment& environment) {
  return environment.has("SLURM_PROCID") &&
         environment.text("SLURM_PROCID") == environment.text("PMI_RANK") &&
         environment.text("SLURM_NTASKS") == environment.text("PMI_SIZE");
}

}  // namespace

LaunchedRank launched_rank(const Variables& look_up) {
  const Environment environment(look_up);
  LaunchedRank found;
  if (environment.has("RANK")) {
    found = by_torchrun(environment);
  } else if (environment.has("OMPI_COMM_WORLD_RANK")) {
    found = by_mpi(environment, kOpenMpi);
  } else if (environment.has("PMI_RANK") && !slurm_counts(environment)) {
    found = by_mpi(environment, kMpich);
  } else if (environment.has("SLURM_PROCID")) {
    found = by_slurm(environment);
  } else {
    fail(ErrorKind::Usage,
         "--distributed finds no other processes; start them with quench launch, torchrun, "
         "mpirun or srun");
  }
  found.ranks.interface = environment.text("GLOO_SOCKET_IFNAME");
  return found;
}

void take_place(const LaunchedRank& place, Context& context) {
  if (context.threads == 0) {
    context.threads = std::max(1, context.num_threads() / std::max(1, place.local_size));
  }
  if (context.device == "cuda") context.device = format("cuda:{}", place.local_rank);
}

}  // namespace quench
