// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/buffer_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14.
#endif
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

namespace verbena {
namespace {

constexpr size_t kPageBytes = 4096;  // The smallest there is; classes are multiples of half of it.
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A range of pages, unmapped when it goes.
class Mapping : public BlockMemory {
 public:
  explicit Mapping(std::span<std::byte> pages) : pages_(pages) {}
  ~Mapping() override { Unmap(pages_); }

  static void Unmap(std::span<std::byte> pages) {
    if (!pages.empty()) PCHECK(munmap(pages.data(), pages.size()) == 0) << pages.size();
  }

 private:
  const std::span<std::byte> pages_;
};

// Empty, with errno, when it failed.
std::span<std::byte> Map(size_t bytes, int flags) {
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED) return {};
  return {static_cast<std::byte*>(data), bytes};
}

// Of the huge pages that the host has set aside. Populated: mmap(2) reserves them, but whether this
// process's control group allows them is only asked when they are touched, and refusal is a SIGBUS
// (Linux, Documentation/admin-guide/cgroup-v1/hugetlb.rst). Empty when there are none.
std::span<std::byte> MapReservedHugePages(size_t bytes) {
  const std::span<std::byte> pages = Map(bytes, MAP_HUGETLB | MAP_HUGE_2MB);
  if (pages.empty()) return {};
  if (madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) == 0) return pages;
  Mapping::Unmap(pages);
  return {};
}

// Aligned, since only an aligned huge page of memory can become one page; kernels before Linux 6.7
// align nothing by themselves.
std::span<std::byte> MapForHugePages(size_t bytes) {
  const std::span<std::byte> pages = Map(bytes + kHugePageBytes, 0);
  if (pages.empty()) return {};
  const auto address = reinterpret_cast<uint64_t>(pages.data());
  const size_t before = RoundUp(address, kHugePageBytes) - address;
  Mapping::Unmap(pages.first(before));
  Mapping::Unmap(pages.subspan(before + bytes));
  // Failing is no error: a kernel without them.
  madvise(pages.data() + before, bytes, MADV_HUGEPAGE);
  return pages.subspan(before, bytes);
}

// Makes the pages exist now. Failing is no error: they come on first use.
void Prefault(std::span<std::byte> pages) {
  if (madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) == 0 || errno != EINVAL) return;
  for (size_t at = 0; at < pages.size(); at += kPageBytes) {
    const_cast<volatile std::byte*>(pages.data())[at] = std::byte{0};
  }
}

class MappingSource : public BlockSource {
 public:
  explicit MappingSource(bool prefault) : prefault_(prefault) {}

  absl::StatusOr<Made> Make(size_t bytes) override {
    bytes = RoundUp(bytes, kPageBytes);
    std::span<std::byte> pages;
    // Multiples only, which all classes from 16 MiB on are: else up to half of what is set aside
    // would be in use beyond what is charged.
    if (prefault_ && bytes % kHugePageBytes == 0) pages = MapReservedHugePages(bytes);
    if (pages.empty()) {
      pages = bytes >= kHugePageBytes ? MapForHugePages(bytes) : Map(bytes, 0);
      if (pages.empty()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("mapping memory of ", bytes, " bytes failed: ", strerror(errno),
                         ". Look at the memory limit and vm.max_map_count."));
      }
      if (prefault_) Prefault(pages);
    }
    return Made{.bytes = pages, .memory = std::make_shared<Mapping>(pages)};
  }

 private:
  const bool prefault_;
};

std::vector<std::shared_ptr<MemoryBudget>> BudgetsOf(const BufferPoolOptions& options) {
  std::vector<std::shared_ptr<MemoryBudget>> budgets;
  if (options.bytes_max != 0) {
    budgets.push_back(std::make_shared<MemoryBudget>("the memory budget of the BufferPool",
                                                     options.bytes_max,
                                                     "raise BufferPoolOptions::bytes_max"));
  }
  budgets.push_back(options.budget != nullptr ? options.budget : MemoryBudget::OfProcess());
  return budgets;
}

}  // namespace

BufferPool::BufferPool(BufferPoolOptions options)
    : pool_(BlockPool::Create(std::make_unique<MappingSource>(options.prefault),
                              BudgetsOf(options))) {}

BufferPool::~BufferPool() { pool_->Close(); }

absl::StatusOr<Buffer> BufferPool::Allocate(size_t bytes) { return pool_->Take(bytes); }

void BufferPool::Trim() { pool_->Trim(); }

uint64_t BufferPool::bytes() const { return pool_->bytes(); }

}  // namespace verbena
