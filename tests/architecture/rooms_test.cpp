// tests/architecture/rooms_test.cpp -- the map of the rooms, kept true by a test.
// A room may include itself and the rooms listed for it; the list is in order, so no cycle forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Room {
  std::string name;
  std::vector<std::string> may_use;
};

// Lowest first: a room may only name rooms above its own line.
std::vector<Room> const rooms = {
    {"core", {}},
    {"config", {"core"}},
    {"io", {"core"}},
    {"safetensors", {"core", "io"}},
    {"tokenizer", {"core", "io"}},
    {"kernels", {"core"}},
    {"comm", {"core"}},
    {"media", {"core", "io"}},
    {"metrics", {"core", "io"}},
    {"data", {"core", "tokenizer", "media"}},
    {"shards", {"core", "io", "media", "data", "tokenizer"}},
    {"prepare", {"core", "config", "io", "tokenizer", "media", "data", "shards", "comm"}},
    {"loader", {"core", "config", "media", "data", "shards"}},
    {"model", {"core", "safetensors", "kernels", "loader"}},
    {"params", {"core", "config", "io", "safetensors", "model"}},
    {"zero", {"core", "config", "comm", "params"}},
    {"checkpoint", {"core", "io", "safetensors", "comm", "params", "zero"}},
    {"train",
     {"core", "config", "io", "comm", "safetensors", "tokenizer", "metrics", "loader", "model",
      "params", "zero", "checkpoint"}},
    {"app",
     {"core", "config", "io", "comm", "safetensors", "tokenizer", "media", "metrics", "data",
      "shards", "prepare", "loader", "model", "params", "checkpoint", "train"}},
};

/// Library headers that must stay in the rooms and files named.
struct Library {
  std::string pattern;
  std::vector<std::string> allowed;  // prefixes of paths below src/
};
std::vector<Library> const libraries = {
    {R"(mpi\.h)", {"comm/mpi.cpp"}},
    {R"(nccl\.h)", {"comm/nccl.cpp"}},
    {R"(hdf5\.h)", {"io/hdf5"}},
    {R"(boost/program_options)", {"config/"}},
    {R"((png|jpeglib|tiffio|gif_lib)\.h|webp/.*|libav.*|libsw.*)", {"media/"}},
    {R"(ATen/.*|torch/.*|c10/.*)",
     {"safetensors/", "kernels/", "comm/", "loader/", "model/", "params/", "zero/", "checkpoint/",
      "train/", "app/"}},
};

fs::path source() {
  return fs::path(VLR_SOURCE_DIR) / "src";
}

/// Calls `visit(path below src, included name, angle or quote)` for every include of every room.
template <class Visit>
void for_each_include(Visit visit) {
  std::regex const include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  for (auto const& entry : fs::recursive_directory_iterator(source())) {
    auto const extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".cu") continue;
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_search(line, match, include))
        visit(fs::relative(entry.path(), source()).string(), match[2].str(), match[1].str());
  }
}

TEST(Architecture, RoomsOnlyNameRoomsBelowThem) {
  std::vector<std::string> below;
  for (auto const& room : rooms) {
    for (auto const& used : room.may_use)
      EXPECT_NE(std::find(below.begin(), below.end(), used), below.end())
          << room.name << " -> " << used;
    below.push_back(room.name);
  }
}

TEST(Architecture, EveryFolderIsARoomOfTheMap) {
  for (auto const& entry : fs::directory_iterator(source())) {
    if (!entry.is_directory()) continue;
    auto const name = entry.path().filename().string();
    EXPECT_TRUE(std::any_of(rooms.begin(), rooms.end(), [&](auto const& r) {
      return r.name == name;
    })) << name;
  }
}

TEST(Architecture, IncludesFollowTheMap) {
  int seen = 0;
  for_each_include([&](std::string const& path, std::string const& name, std::string const& quote) {
    if (quote != "\"" || name.find('/') == std::string::npos) return;
    auto const from = path.substr(0, path.find('/'));
    auto const to = name.substr(0, name.find('/'));
    ++seen;
    if (from == to) return;
    auto const room =
        std::find_if(rooms.begin(), rooms.end(), [&](auto const& r) { return r.name == from; });
    ASSERT_NE(room, rooms.end()) << path;
    EXPECT_NE(std::find(room->may_use.begin(), room->may_use.end(), to), room->may_use.end())
        << path << " includes " << name;
  });
  EXPECT_GT(seen, 100);
}

TEST(Architecture, LibraryHeadersStayInTheirRooms) {
  for_each_include([&](std::string const& path, std::string const& name, std::string const& quote) {
    if (quote != "<") return;
    for (auto const& library : libraries) {
      if (!std::regex_match(name, std::regex(library.pattern))) continue;
      EXPECT_TRUE(std::any_of(library.allowed.begin(), library.allowed.end(),
                              [&](auto const& prefix) { return path.rfind(prefix, 0) == 0; }))
          << path << " includes <" << name << ">";
    }
  });
}

}  // namespace
