// SPDX-License-Identifier: Apache-2.0
#include "harness/base/hash.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sha256.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "harness/base/rng.h"

namespace moegate {

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  const auto add = [&seed](uint64_t word) { seed = mix64(seed ^ word) + 0x9e3779b97f4a7c15ull; };
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, p + i, sizeof word);
    add(word);
  }
  uint64_t tail = bytes;
  for (; i < bytes; ++i) tail = tail << 8 | p[i];
  add(tail);
  return seed;
}

std::string sha256(const std::string& text) {
  return sha256_before(text, {text.size()}).front();
}

std::vector<std::string> sha256_before(const std::string& text, const std::vector<size_t>& places) {
  SHA256_CTX all;
  SHA256Init(&all);
  std::vector<std::string> hashes;
  size_t done = 0;
  for (const size_t place : places) {
    SHA256Update(&all, reinterpret_cast<const uint8_t*>(text.data()) + done, place - done);
    done = place;
    SHA256_CTX here = all;
    std::array<char, SHA256_DIGEST_STRING_LENGTH> hex{};
    SHA256End(&here, hex.data());
    hashes.emplace_back(hex.data());
  }
  return hashes;
}

namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kWhole = size_t{64} << 20, kEnd = size_t{1} << 20;

/// The whole of a file in memory, as long as it is needed.
class Mapped {
 public:
  explicit Mapped(const std::string& path, size_t bytes) : bytes_(bytes) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (bytes > 0) at_ = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    ok_ = at_ != MAP_FAILED;
    close(file);
  }
  ~Mapped() {
    if (ok_ && bytes_ > 0) munmap(at_, bytes_);
  }
  Mapped(Mapped&&) = delete;
  bool ok() const { return ok_; }
  Bytes bytes() const { return {static_cast<const uint8_t*>(at_), ok_ ? bytes_ : 0}; }

 private:
  void* at_ = nullptr;
  size_t bytes_;
  bool ok_ = false;
};

Bytes part(Bytes all, uint64_t offset, uint64_t size) {
  const bool inside = offset <= all.size() && size <= all.size() - offset;
  return inside ? all.subspan(offset, size) : Bytes();
}

template <class T>
std::vector<T> table(Bytes bytes) {
  std::vector<T> entries(bytes.size() / sizeof(T));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(T));
  return entries;
}

/// Where a library's names have the folders in which it looks for others: those of a build.
std::vector<uint64_t> search_paths(Bytes all, const std::vector<Elf64_Shdr>& sections) {
  std::vector<uint64_t> found;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNAMIC) continue;
    for (const auto& entry : table<Elf64_Dyn>(part(all, section.sh_offset, section.sh_size))) {
      if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) found.push_back(entry.d_un.d_val);
    }
  }
  return found;
}

/// Of what the loader maps: neither debug information nor the build's id counts, nor where the
/// build lay. False: it is no file of 64-bit ELF.
bool add_mapped(Bytes all, uint64_t& hash) {
  const auto heads = table<Elf64_Ehdr>(part(all, 0, sizeof(Elf64_Ehdr)));
  if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      heads[0].e_ident[EI_CLASS] != ELFCLASS64 || heads[0].e_shentsize != sizeof(Elf64_Shdr)) {
    return false;
  }
  const uint64_t table_bytes = uint64_t{heads[0].e_shnum} * sizeof(Elf64_Shdr);
  const auto sections = table<Elf64_Shdr>(part(all, heads[0].e_shoff, table_bytes));
  if (sections.empty()) return false;
  const std::vector<uint64_t> paths = search_paths(all, sections);
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOTE) continue;
    hash = hash_bytes(&section.sh_size, sizeof section.sh_size, hash);
    if (section.sh_type == SHT_NOBITS) continue;
    const Bytes bytes = part(all, section.sh_offset, section.sh_size);
    if (bytes.empty() && section.sh_size > 0) return false;
    std::vector<uint8_t> names;
    if (section.sh_type == SHT_STRTAB && !paths.empty()) {
      names.assign(bytes.begin(), bytes.end());
      for (uint64_t at : paths) {
        for (; at < names.size() && names[at] != 0; ++at) names[at] = ' ';
      }
    }
    const Bytes counted = names.empty() ? bytes : Bytes(names);
    hash = hash_bytes(counted.data(), counted.size(), hash);
  }
  return true;
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat now {};
  if (stat(path.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return std::nullopt;
  return FileStamp{now.st_size,        now.st_mtim.tv_sec,  now.st_mtim.tv_nsec,
                   now.st_ctim.tv_sec, now.st_ctim.tv_nsec, static_cast<int64_t>(now.st_ino)};
}

std::string content_hash(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path);
  return stamp ? content_hash(path, *stamp) : "";
}

std::string content_hash(const std::string& path, const FileStamp& stamp) {
  const auto size = static_cast<size_t>(stamp[0]);
  const Mapped mapped(path, size);
  if (!mapped.ok()) return "";
  const Bytes all = mapped.bytes();
  uint64_t hash = 0;
  if (size > kWhole) {
    for (const Bytes end : {all.first(kEnd), all.last(kEnd)}) {
      hash = hash_bytes(end.data(), end.size(), hash);
    }
    hash = hash_bytes(stamp.data(), 3 * sizeof stamp[0], hash);
  } else if (!add_mapped(all, hash)) {
    hash = hash_bytes(all.data(), all.size());
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace moegate
