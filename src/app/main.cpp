// app/main.cpp -- finds the command, starts MPI when it needs it, and turns errors into exit codes.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/commands.hpp"
#include "config/nearest.hpp"
#include "config/options.hpp"

namespace vlrerank {
namespace {

using Local = int (*)(Settings const&);
using OnRanks = std::function<int(Settings const&, Launch const&)>;

std::map<std::string, Local> const local_commands = {
    {"check", run_check}, {"inspect", run_inspect}, {"new-model", run_new_model}};
std::map<std::string, OnRanks> const rank_commands = {
    {"prepare", [](Settings const& s, Launch const& l) { return run_prepare(s, l.control); }},
    {"train", run_train},
    {"eval", run_eval},
    {"score", run_score}};

void print(std::FILE* out, std::string const& text) {
  std::fputs(text.c_str(), out);
  if (text.empty() || text.back() != '\n') std::fputc('\n', out);
}

/// Before MPI is up the launcher's environment tells who is first, so that one rank speaks for all.
bool speaks_for_all() {
  for (auto const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (auto const* rank = std::getenv(name)) return std::string(rank) == "0";
  return true;
}

int print_error(Error const& error) {
  if (speaks_for_all()) print(stderr, text("vlrerank: ", error.what()));
  return static_cast<int>(error.code());
}

/// What was printed must have arrived, or a full disk would pass for success.
void check_output() {
  VLR_IO(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "cannot write to standard output",
         "free space where it goes, or send it elsewhere");
}

int run_on_ranks(OnRanks const& command, Parsed const& parsed, int argc, char** argv) {
  MpiEnvironment mpi(argc, argv);
  try {
    auto const control = make_mpi_communicator();
    auto const [local_rank, local_size] = mpi.local_rank_and_size();
    if (control->is_root())
      for (auto const& notice : parsed.notices) print(stderr, "vlrerank: " + notice);
    Launch const launch{*control, local_rank, local_size};
    int const code = command(parsed.settings, launch);
    check_output();
    control->barrier();
    return code;
  } catch (Error const& error) {
    mpi.abort(error.code(), error.what());
  } catch (std::exception const& error) {
    mpi.abort(Exit::internal, error.what());
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print(stdout, help_text(""));
    return static_cast<int>(Exit::usage);
  }
  auto const command = arguments.front();
  arguments.erase(arguments.begin());
  if (command == "--help" || command == "-h" || command == "help") {
    print(stdout, help_text(arguments.empty() ? "" : arguments.front()));
    return 0;
  }
  if (command == "--version" || command == "version") {
    print(stdout, version_text());
    return 0;
  }
  auto const local = local_commands.find(command);
  auto const on_ranks = rank_commands.find(command);
  if (local == local_commands.end() && on_ranks == rank_commands.end()) {
    std::vector<std::string> names;
    for (auto const& [name, unused] : local_commands) names.push_back(name);
    for (auto const& [name, unused] : rank_commands) names.push_back(name);
    auto const near = nearest(command, names);
    print(stderr, text("vlrerank: there is no command ", command, "\n  fix:   ",
                       near.empty() ? std::string() : text("did you mean `vlrerank ", near, "`? "),
                       "`vlrerank --help` lists them all"));
    return static_cast<int>(Exit::usage);
  }
  auto const parsed = parse_options(
      command, arguments, [](char const* name) -> char const* { return std::getenv(name); });
  if (parsed.help) {
    print(stdout, help_text(command));
    return 0;
  }
  if (on_ranks != rank_commands.end()) return run_on_ranks(on_ranks->second, parsed, argc, argv);
  if (!speaks_for_all()) return 0;  // these commands have nothing to share with other ranks
  for (auto const& notice : parsed.notices) print(stderr, "vlrerank: " + notice);
  int const code = local->second(parsed.settings);
  check_output();
  return code;
}

}  // namespace
}  // namespace vlrerank

int main(int argc, char** argv) {
  // Under srun stdout is a pipe: line buffering keeps what a killed rank had printed.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return vlrerank::run(argc, argv);
  } catch (vlrerank::Error const& error) {
    return vlrerank::print_error(error);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "vlrerank: %s\n", error.what());
    return static_cast<int>(vlrerank::Exit::internal);
  }
}
