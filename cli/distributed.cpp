// SPDX-License-Identifier: Apache-2.0
// Which variables tell a process its rank.
#include "cli/distributed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/help_flags.h"

namespace quench::cli {
namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int least, int most) {
  const std::string text = value_of(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  throw Error(ErrorKind::Usage, text.empty()
                                    ? fmt::format("--distributed needs {} in the environment", name)
                                    : fmt::format("{} is '{}'; expected a number from {} to {}",
                                                  name, text, least, most));
}

int number_or(const char* name, int least, int most, int otherwise) {
  return std::getenv(name) == nullptr ? otherwise : number(name, least, most);
}

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPorts = 65535;
constexpr int kPort = 29500;

/// Rank and size by their names in one launcher's environment.
void read_place(const char* rank, const char* size, RankOptions& options) {
  options.size = number(size, 1, kMostRanks);
  options.rank = number(rank, 0, options.size - 1);
}

/// The first machine of Slurm's list: "node[03-07,9],other" is node03.
std::string first_node(std::string_view list) {
  const std::size_t open = list.find_first_of("[,");
  std::string name(list.substr(0, open));
  if (open == std::string_view::npos || list[open] == ',') return name;
  const std::size_t end = list.find_first_of("-,]", open);
  return name + std::string(list.substr(open + 1, end - open - 1));
}

Launched by_torchrun() {
  Launched found;
  read_place("RANK", "WORLD_SIZE", found.ranks);
  found.ranks.address = value_of("MASTER_ADDR");
  if (found.ranks.address.empty()) found.ranks.address = "127.0.0.1";
  found.ranks.port = number_or("MASTER_PORT", 1, kMostPorts, kPort);
  // torchrun itself listens at that port, and speaks the protocol of its own version.
  const bool taken = value_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (taken) found.ranks.port += found.ranks.port < kMostPorts ? 1 : -1;
  found.local_rank = number_or("LOCAL_RANK", 0, kMostRanks, 0);
  found.local_size = number_or("LOCAL_WORLD_SIZE", 1, kMostRanks, 1);
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

Launched by_mpi(const MpiNames& names) {
  Launched found;
  read_place(names.rank, names.size, found.ranks);
  found.local_rank = number_or(names.local_rank, 0, kMostRanks, 0);
  found.local_size = number_or(names.local_size, 1, kMostRanks, 1);
  found.ranks.address = value_of("MASTER_ADDR");
  if (found.ranks.address.empty() && found.local_size == found.ranks.size) {
    found.ranks.address = "127.0.0.1";
  }
  if (found.ranks.address.empty()) {
    throw Error(ErrorKind::Usage,
                "MPI does not say which machine rank 0 is on: set MASTER_ADDR for all ranks "
                "(Open MPI: mpirun -x MASTER_ADDR=HOST; MPICH: mpiexec -genv MASTER_ADDR HOST)");
  }
  found.ranks.port = number_or("MASTER_PORT", 1, kMostPorts, kPort);
  return found;
}

Launched by_slurm() {
  Launched found;
  read_place("SLURM_PROCID", "SLURM_NTASKS", found.ranks);
  found.local_rank = number_or("SLURM_LOCALID", 0, kMostRanks, 0);
  found.local_size = number_or("SLURM_NTASKS_PER_NODE", 1, kMostRanks, 1);
  found.ranks.address = value_of("MASTER_ADDR");
  if (found.ranks.address.empty())
    found.ranks.address = first_node(value_of("SLURM_STEP_NODELIST"));
  if (found.ranks.address.empty()) found.ranks.address = first_node(value_of("SLURM_JOB_NODELIST"));
  if (found.ranks.address.empty()) found.ranks.address = "127.0.0.1";
  // Jobs that share a machine have ports of their own.
  constexpr int kFirst = 20000;
  constexpr int kPorts = 20000;
  const int job = number_or("SLURM_JOB_ID", 0, 1 << 30, 0);
  found.ranks.port = number_or("MASTER_PORT", 1, kMostPorts, kFirst + job % kPorts);
  return found;
}

/// Whether the ranks are Slurm's, which may speak PMI to them. MPICH's mpiexec starts its helpers
/// by Slurm, and those have other numbers than ranks.
bool slurm_counts() {
  return std::getenv("SLURM_PROCID") != nullptr &&
         value_of("SLURM_PROCID") == value_of("PMI_RANK") &&
         value_of("SLURM_NTASKS") == value_of("PMI_SIZE");
}

/// Kept until the program ends, also where a verb fails.
std::shared_ptr<Ranks>& joined() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

bool& warns_at_end() {
  static bool warns = false;
  return warns;
}

}  // namespace

Launched launched_by_environment() {
  Launched found;
  if (std::getenv("RANK") != nullptr) {
    found = by_torchrun();
  } else if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) {
    found = by_mpi(kOpenMpi);
  } else if (std::getenv("PMI_RANK") != nullptr && !slurm_counts()) {
    found = by_mpi(kMpich);
  } else if (std::getenv("SLURM_PROCID") != nullptr) {
    found = by_slurm();
  } else {
    throw Error(ErrorKind::Usage,
                "--distributed finds no other processes; start them with quench launch, torchrun, "
                "mpirun or srun");
  }
  found.ranks.interface = value_of("GLOO_SOCKET_IFNAME");
  return found;
}

namespace {

/// A process has one command line.
bool& tensor_parallel_flag() {
  static bool given = false;
  return given;
}

}  // namespace

CLI::Option* add_tensor_parallel_flag(CLI::App& app) {
  return for_experts(
             app.add_flag("--tensor-parallel", tensor_parallel_flag(),
                          "Each process has one part of a model whose layers are split over them; "
                          "{rank} in a path is its number"))
      ->needs(app.get_option("--distributed"));
}

bool tensor_parallel() { return tensor_parallel_flag(); }

std::vector<std::string> with_rank(std::vector<std::string> words) {
  constexpr std::string_view kPlace = "{rank}";
  const auto has = [&](const char* flag) {
    return std::find(words.begin(), words.end(), flag) != words.end();
  };
  // What is launched gets its rank where it runs.
  const bool launches = !words.empty() && words.front() == "launch";
  if (launches || !has("--tensor-parallel") || !has("--distributed")) return words;
  const std::string rank = std::to_string(launched_by_environment().ranks.rank);
  for (std::string& word : words) {
    for (auto at = word.find(kPlace); at != std::string::npos; at = word.find(kPlace, at)) {
      word.replace(at, kPlace.size(), rank);
    }
  }
  return words;
}

std::shared_ptr<Ranks> join_process(const RankOptions& options, const Context& context,
                                    bool quiet) {
  joined() = join_ranks(options, context);
  warns_at_end() = options.rank == 0 && !quiet;
  if (options.rank > 0) (void)std::freopen("/dev/null", "w", stdout);
  return joined();
}

Ranks* process_ranks() noexcept { return joined().get(); }

void leave_ranks() {
  if (!joined()) return;
  joined()->leave();
  if (!warns_at_end()) return;
  for (const int rank : joined()->missing()) {
    std::fprintf(stderr, "quench: warning: rank %d of %d never came: others did its share\n", rank,
                 joined()->size());
  }
}

}  // namespace quench::cli
