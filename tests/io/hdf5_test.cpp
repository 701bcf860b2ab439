// io/hdf5_test.cpp -- flat HDF5 files keep their structure and refuse foreign ones.
#include "io/hdf5.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "io/files.hpp"
#include "io/seal.hpp"
#include "support/temporary_folder.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

hdf5::Layout small_layout() {
  return {{{"a", hdf5::Type::i32, {7}, 0},
           {"none", hdf5::Type::f64, {0}, 0},
           {"table", hdf5::Type::u64, {4, 3}, 0}},
          {{"format", "test", ""},
           {"version", std::int64_t{-3}, ""},
           {"xxh3", ~std::uint64_t{0}, "a"},
           {"empty", "", "table"}}};
}

/// The message of opening `path`; "" when it opens.
std::string refusal(fs::path const& path) {
  try {
    hdf5::open(path);
    return "";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::input) << error.what();
    EXPECT_NE(error.summary().find(path.string()), std::string::npos) << error.what();
    return error.summary();
  }
}

TEST(Hdf5, GivesTheLayoutBackThatItWrote) {
  TemporaryFolder const folder;
  auto written = small_layout();
  hdf5::create(folder / "a.h5", written);

  auto const read = hdf5::open(folder / "a.h5");

  ASSERT_EQ(read.arrays.size(), 3u);
  for (auto const& array : written.arrays) {
    auto const* found = read.array(array.name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->type, array.type);
    EXPECT_EQ(found->shape, array.shape);
    EXPECT_EQ(found->offset, array.offset);
  }
  ASSERT_EQ(read.attributes.size(), 4u);
  for (auto const& attribute : written.attributes)
    EXPECT_EQ(*read.attribute(attribute.name, attribute.array), attribute.value);
}

TEST(Hdf5, ReadsThroughTheLibraryWhatWasWrittenAtTheOffsets) {
  TemporaryFolder const folder;
  auto layout = small_layout();
  std::vector<std::int32_t> const values{3, 1, 4, 1, 5, 9, -2};
  AtomicFile file(folder / "a.h5");
  hdf5::create(file.temporary(), layout);
  file.write_at(layout.array("a")->offset, std::as_bytes(std::span(values)));
  file.commit();

  hid_t const id = H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t const set = H5Dopen2(id, "a", H5P_DEFAULT);
  std::vector<std::int32_t> read(values.size());
  EXPECT_GE(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
  H5Dclose(set);
  H5Fclose(id);

  EXPECT_EQ(read, values);
}

TEST(Hdf5, WritesEqualBytesForEqualLayouts) {
  TemporaryFolder const folder;
  auto first = small_layout(), second = small_layout();
  hdf5::create(folder / "a.h5", first);
  hdf5::create(folder / "b.h5", second);

  EXPECT_EQ(read_file(folder / "a.h5"), read_file(folder / "b.h5"));
}

TEST(Hdf5, HoldsArraysBehindFourGibibytesAndLongAttributes) {
  TemporaryFolder const folder;
  std::string const text_of_100k(100'000, 't');
  hdf5::Layout layout{
      {{"big", hdf5::Type::u8, {std::uint64_t{5} << 30}, 0}, {"behind", hdf5::Type::i64, {2}, 0}},
      {{"long", text_of_100k, ""}}};
  hdf5::create(folder / "a.h5", layout);

  auto const read = hdf5::open(folder / "a.h5");

  EXPECT_EQ(std::get<std::string>(*read.attribute("long")), text_of_100k);
  EXPECT_EQ(read.array("big")->bytes(), std::uint64_t{5} << 30);
  EXPECT_GT(
      std::max(read.array("big")->offset + (std::uint64_t{5} << 30), read.array("behind")->offset),
      std::uint64_t{5} << 30);
}

TEST(Hdf5, RefusesWhatIsNotHdf5) {
  TemporaryFolder const folder;
  write_file(folder / "empty.h5", "");
  write_file(folder / "text.h5", "not HDF5 at all\n");
  auto layout = small_layout();
  hdf5::create(folder / "cut.h5", layout);
  fs::resize_file(folder / "cut.h5", fs::file_size(folder / "cut.h5") / 2);

  auto other = H5Fcreate((folder / "other.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(other);

  for (auto const* name : {"empty.h5", "text.h5", "other.h5"})
    EXPECT_NE(refusal(folder / name).find("was not written by vlrerank"), std::string::npos);
  EXPECT_NE(refusal(folder / "cut.h5").find("bytes, it was written with"), std::string::npos);
  EXPECT_NE(refusal(folder.path()), "");
  EXPECT_NE(refusal(folder / "none.h5").find("No such file"), std::string::npos);
}

TEST(Hdf5, RefusesForeignStructuresByName) {
  TemporaryFolder const folder;
  auto const path = folder / "foreign.h5";
  auto const make = [&](auto fill) {
    hid_t const list = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(list, hdf5::seal_bytes);
    hid_t const file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, list, H5P_DEFAULT);
    H5Pclose(list);
    fill(file);
    H5Fclose(file);
    hdf5::write_seal(path, {});  // else HDF5 would not even see it
    return refusal(path);
  };
  hsize_t const size = 64;

  EXPECT_NE(make([](hid_t file) {
              H5Gclose(H5Gcreate2(file, "folder", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            }).find("folder is not a dataset"),
            std::string::npos);
  EXPECT_NE(make([](hid_t file) {
              H5Lcreate_external("/etc/passwd", "/x", file, "outside", H5P_DEFAULT, H5P_DEFAULT);
            }).find("outside is not a dataset of this file"),
            std::string::npos);
  EXPECT_NE(
      make([&](hid_t file) {
        hid_t const space = H5Screate_simple(1, &size, nullptr);
        hid_t const list = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(list, 1, &size);
        H5Dclose(H5Dcreate2(file, "chunked", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
        H5Pclose(list);
        H5Sclose(space);
      }).find("chunked is not contiguous"),
      std::string::npos);
  EXPECT_NE(make([&](hid_t file) {
              hid_t const space = H5Screate_simple(1, &size, nullptr);
              H5Dclose(H5Dcreate2(file, "endian", H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT,
                                  H5P_DEFAULT));
              H5Sclose(space);
            }).find("endian has an element type"),
            std::string::npos);
  EXPECT_NE(make([&](hid_t file) {
              hid_t const space = H5Screate_simple(1, &size, nullptr);
              H5Dclose(H5Dcreate2(file, "late", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                                  H5P_DEFAULT));
              H5Sclose(space);
            }).find("late was never written"),
            std::string::npos);
}

}  // namespace
}  // namespace vlrerank
