// tests/config/docs_test.cpp -- help texts and docs/options.md follow the tables.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "config/support.hpp"
#include "config/table.hpp"

namespace vlrerank {
namespace {

TEST(Docs, OptionsPageIsWhatTheTablesSay) {
  std::string const path = VLR_SOURCE_DIR "/docs/options.md";
  if (std::getenv("VLR_UPDATE_DOCS") != nullptr) std::ofstream(path) << options_markdown();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();

  EXPECT_TRUE(page.str() == options_markdown())
      << path << " is out of date: run this test with VLR_UPDATE_DOCS=1";
}

TEST(Help, ListsEveryOptionOfACommandWithinAHundredColumns) {
  for (auto const& command : commands()) {
    auto const help = help_text(command.name);
    Settings settings;
    for (auto const& option : command.table(settings))
      EXPECT_TRUE(
          contains(help, "  " + std::string(option.positional ? "" : "--") + option.name + " "))
          << command.name << " --" << option.name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 100U) << command.name << ": " << line;
  }
}

TEST(Help, ShowsGroupsAndDefaults) {
  auto const help = help_text("train");

  EXPECT_TRUE(contains(help, "\nOptimizer and schedule\n")) << help;
  EXPECT_TRUE(contains(help, "(1e-4 for LoRA, 1e-5 for full)")) << help;
  EXPECT_TRUE(contains(help, "rank r of each LoRA pair (8)")) << help;
}

TEST(Help, WithoutACommandListsTheCommands) {
  for (auto const& command : commands())
    EXPECT_TRUE(contains(help_text(""), command.summary)) << command.name;
}

}  // namespace
}  // namespace vlrerank
