// tests/metrics/folder.hpp -- an empty folder for each test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace vlrerank {

class FolderTest : public testing::Test {
 protected:
  std::filesystem::path const& folder() const { return folder_; }
  void SetUp() override {
    auto const* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("vlrerank-metrics-" + std::to_string(::getpid()) + "-" + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};

}  // namespace vlrerank
