// support/test_data.hpp -- where the golden data lies, unpacked by scripts/unpack-test-data.sh.
// tests/data/README.md lists what is there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace vlrerank {

/// Path of a golden file or folder, such as "reference/cases/index.json" or "cases/files".
/// The folder is $VLRERANK_TEST_DATA, or .deps/testdata of the source tree.
/// Throws std::runtime_error, naming the script to run, when it is not there.
inline std::filesystem::path test_data(std::string_view relative) {
  char const* const told = std::getenv("VLRERANK_TEST_DATA");
  auto const base = told != nullptr && *told != '\0'
                        ? std::filesystem::path(told)
                        : std::filesystem::path(VLR_SOURCE_DIR) / ".deps/testdata";
  auto path = base / relative;
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path.string() +
                             " is missing\n  fix:   run scripts/unpack-test-data.sh");
  return path;
}

}  // namespace vlrerank
