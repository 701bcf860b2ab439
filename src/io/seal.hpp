// io/seal.hpp -- a checksum over the structure of a flat HDF5 file, kept in its user block.
// HDF5 1.10 frees wild pointers when its own metadata is damaged; a file reaches the library only
// when every byte that HDF5 itself will interpret is as we wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace vlrerank::hdf5 {

/// Bytes before HDF5's superblock that belong to the seal. Other HDF5 programs step over them.
constexpr std::uint64_t seal_bytes = 4096;
/// Arrays that a seal can list.
constexpr std::size_t most_sealed = (seal_bytes - 64) / 16;

/// Where the bulk of an array lies: not part of the structure.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Computes the checksum of a finished structure and writes the seal. Throws Error (exit 74).
void write_seal(std::filesystem::path const& path, std::vector<Extent> arrays);
/// Throws Error (exit 3): not a file of ours, cut (with both sizes), or a damaged structure.
void check_seal(std::filesystem::path const& path);

}  // namespace vlrerank::hdf5
