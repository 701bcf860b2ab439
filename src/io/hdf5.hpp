// io/hdf5.hpp -- flat HDF5 files: contiguous datasets in the root group, and attributes.
// HDF5 keeps the structure; the values themselves go by pread and pwrite at the offsets it tells,
// so that reading needs no lock of the library and a full disk shows as a plain errno.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace vlrerank::hdf5 {

/// Element types, little-endian in the file.
enum class Type { u8, i32, i64, u64, f32, f64 };
std::uint64_t size_of(Type type);
char const* name_of(Type type);

/// One contiguous dataset without filters.
struct Array {
  std::string name;
  Type type = Type::u8;
  std::vector<std::uint64_t> shape;  ///< one or two dimensions
  std::uint64_t offset = 0;          ///< of its first byte in the file; 0 when it is empty

  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * size_of(type); }
};

using Value = std::variant<std::int64_t, std::uint64_t, std::string>;

/// A named value at the file, or at one array.
struct Attribute {
  std::string name;
  Value value;
  std::string array;  ///< the array that carries it; empty: the file
};

struct Layout {
  std::vector<Array> arrays;
  std::vector<Attribute> attributes;

  /// nullptr when there is none of that name.
  Array const* array(std::string const& name) const;
  Value const* attribute(std::string const& name, std::string const& array = "") const;
};

/// Writes a file of that structure with room for every array, and fills the offsets in. The
/// values are holes that read as 0 until they are written at their offsets.
/// The bytes depend on the layout alone: no times, no names of users. Format bounds V110.
/// Throws Error (exit 74).
void create(std::filesystem::path const& path, Layout& layout);

/// Reads the structure of a flat file. Throws Error (exit 3) naming the file and the object when
/// it is not of ours, is cut or damaged (io/seal.hpp), or holds anything but contiguous arrays of
/// the types above within the file's size.
Layout open(std::filesystem::path const& path);

/// HDF5's version: of the header we were built with, and of the library that runs.
std::string versions();

}  // namespace vlrerank::hdf5
