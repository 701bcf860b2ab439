// safetensors/safetensors_test.cpp -- good files, hostile files, and files like the reference's.
#include "safetensors/safetensors.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "support/test_data.hpp"

using namespace vlrerank;
namespace fs = std::filesystem;

namespace {

/// A folder of its own for each test, gone afterwards.
class Safetensors : public testing::Test {
 protected:
  Safetensors()
      : folder_(fs::temp_directory_path() /
                text("vlr-safetensors-", ::getpid(), "-",
                     testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~Safetensors() override { fs::remove_all(folder_); }
  fs::path folder_;
};

std::string slurp(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream body;
  body << in.rdbuf();
  return body.str();
}

void spill(fs::path const& path, std::string const& body) {
  std::ofstream(path, std::ios::binary) << body;
}

/// A file of the given header and number of data bytes.
std::string file_of(std::string const& header, std::size_t data) {
  std::string body;
  for (int i = 0; i < 8; ++i) body += static_cast<char>(header.size() >> (8 * i));
  return body + header + std::string(data, '\0');
}

/// What opening says, with the path cut off; empty when the file is accepted.
std::string verdict(fs::path const& path) {
  try {
    TensorFile::open(path);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input);
    EXPECT_NE(error.summary().find(path.string()), std::string::npos) << error.summary();
    return error.summary();
  }
  return "";
}

}  // namespace

TEST_F(Safetensors, AcceptsAndRefusesTheCasesAsTheReferenceDoes) {
  for (std::string const name : {"ok", "unaligned_ok"}) {
    auto const file = TensorFile::open(test_data("cases/files/A07_" + name + ".safetensors"));
    EXPECT_EQ(file.tensors().size(), 2u);
    EXPECT_TRUE(at::equal(file.get("a"), at::arange(6, at::kFloat).view({2, 3})));
    EXPECT_TRUE(at::equal(file.get("b"), at::tensor({1.0, 2.0}).to(at::kBFloat16)));
  }
  auto const empty = TensorFile::open(test_data("cases/files/A07_meta_only_ok.safetensors"));
  EXPECT_TRUE(empty.tensors().empty());
  EXPECT_EQ(empty.metadata().at("crc"), "12");
  for (std::string const name : {"cut", "tail", "hdr_huge", "hdr_cut", "overlap", "shape", "zero"})
    EXPECT_NE(verdict(test_data("cases/files/A07_" + name + ".safetensors")), "") << name;
}

TEST_F(Safetensors, RefusesEveryPrefixOfAGoodFile) {
  auto const good = slurp(test_data("cases/files/A07_ok.safetensors"));
  for (std::size_t length = 0; length < good.size(); ++length) {
    spill(folder_ / "cut", good.substr(0, length));
    EXPECT_NE(verdict(folder_ / "cut"), "") << length;
  }
}

TEST_F(Safetensors, SurvivesEveryFlippedBitOfTheHeader) {
  auto const good = slurp(test_data("cases/files/A07_ok.safetensors"));
  for (std::size_t byte = 0; byte < 152; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      spill(folder_ / "bad", bad);
      try {
        auto const file = TensorFile::open(folder_ / "bad");
        for (auto const& [name, info] : file.tensors()) file.get(name).to(at::kFloat).sum();
      } catch (Error const& error) {
        EXPECT_EQ(error.code(), Exit::input);
      }
    }
  }
}

TEST_F(Safetensors, NamesTheReason) {
  struct Case {
    std::string header;
    std::size_t data;
    std::string reason;
  };
  std::vector<Case> const cases = {
      {R"([1])", 0, "not a JSON object"},
      {R"({"a":)", 0, "not JSON"},
      {R"({"a":1})", 0, "lacks dtype"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "stands twice"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype F33"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "not made of counts"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "not made of counts"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "too large"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "offsets 4 to 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "lacks dtype"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4, "need 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "after a hole"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "inside the one before"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "the file holds 3"},
      {R"({"__metadata__":{"format":1}})", 0, "not a string"},
      {R"({"__metadata__":[]})", 0, "__metadata__ is not"},
  };
  for (auto const& c : cases) {
    spill(folder_ / "bad", file_of(c.header, c.data));
    EXPECT_NE(verdict(folder_ / "bad").find(c.reason), std::string::npos)
        << c.header << " gave: " << verdict(folder_ / "bad");
  }
}

TEST_F(Safetensors, WritesByteForByteLikeTheReference) {
  std::string const init = "reference/train/lora/adapter_init/adapter_model.safetensors";
  for (std::string const& name : {std::string("cases/files/A07_ok.safetensors"), init,
                                  std::string("reference/cases/image_doc.safetensors")}) {
    auto const file = TensorFile::open(test_data(name));
    NamedTensors tensors;
    for (auto const& [key, info] : file.tensors()) tensors.emplace_back(key, file.get(key));
    std::reverse(tensors.begin(), tensors.end());

    write_safetensors(folder_ / "copy", tensors, file.metadata());

    EXPECT_TRUE(slurp(folder_ / "copy") == slurp(test_data(name))) << name;
  }
}

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  auto const base = at::arange(24, at::kFloat).view({4, 6});
  NamedTensors const tensors = {{"strided", base.t()},
                                {"empty", at::zeros({0, 3})},
                                {"scalar", at::scalar_tensor(7, at::kLong)},
                                {"flag", at::tensor({1, 0, 1}).to(at::kBool)},
                                {"half", at::tensor({1.5, -2.0}).to(at::kHalf)}};
  write_safetensors(folder_ / "file", tensors, {{"b", "2"}, {"a", "\"quoted\""}});

  auto const file = TensorFile::open(folder_ / "file");

  EXPECT_EQ(file.metadata().at("a"), "\"quoted\"");
  for (auto const& [name, tensor] : tensors) EXPECT_TRUE(at::equal(file.get(name), tensor)) << name;
  EXPECT_THROW(file.get("other"), Error);
}

TEST_F(Safetensors, ATensorOutlivesItsFile) {
  at::Tensor a;
  {
    auto const files = TensorFiles::open(test_data("cases/files/A07_ok.safetensors"));
    a = files.get("a");
  }
  EXPECT_EQ(a.sum().item<float>(), 15);
}

TEST_F(Safetensors, LeavesNothingBehindWhenTheDiskIsFull) {
  spill(folder_ / "file", "old");
  auto const before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit const tight{4096, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  Exit code = Exit::done;
  try {
    write_safetensors(folder_ / "file", {{"a", at::zeros({100000})}});
  } catch (Error const& error) {
    code = error.code();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, before);

  EXPECT_EQ(code, Exit::io);
  EXPECT_EQ(slurp(folder_ / "file"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Safetensors, ShardsAreFoundThroughTheirIndex) {
  NamedTensors const tensors = {
      {"a", at::ones({100})}, {"b", at::full({100}, 2.0)}, {"c", at::full({300}, 3.0)}};

  auto const files = write_sharded_safetensors(folder_, tensors, 900);

  EXPECT_EQ(files, (std::vector<std::string>{"model-00001-of-00002.safetensors",
                                             "model-00002-of-00002.safetensors",
                                             "model.safetensors.index.json"}));
  auto const all = TensorFiles::open(folder_);
  EXPECT_EQ(all.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(all.get("c").sum().item<float>(), 900);
  EXPECT_EQ(all.info("b").shape, std::vector<std::int64_t>{100});
}

TEST_F(Safetensors, AnIndexThatItsShardsContradictIsRefused) {
  write_sharded_safetensors(folder_, {{"a", at::ones({100})}, {"b", at::ones({100})}}, 500);
  auto const index = folder_ / "model.safetensors.index.json";
  auto const good = slurp(index);
  auto const refused = [&](std::string const& from, std::string const& to) {
    auto bad = good;
    bad.replace(bad.find(from), from.size(), to);
    spill(index, bad);
    EXPECT_THROW(TensorFiles::open(folder_), Error) << to;
  };

  refused("\"a\"", "\"c\"");
  refused("model-00001-of", "../model-00001-of");
  refused("model-00001-of", "model-00007-of");
  refused("weight_map", "weight_mop");
  spill(index, good);
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_THROW(TensorFiles::open(folder_), Error);
  EXPECT_THROW(TensorFiles::open(folder_ / "nothing"), Error);
}
