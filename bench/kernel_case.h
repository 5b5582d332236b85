// A measurement of a kernel on a shape, before it is made: what it is, what it costs at least, and
// how to set it up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// Whose rate limits a kernel with much to multiply.
enum class RoofKind : uint8_t { kInt8, kBf16, kF32 };

// What is called again and again, and the rival that the case names.
struct Contenders {
  std::function<void()> kernel;
  std::function<void()> rival;  // null: there is none
};

struct KernelCase {
  std::string kernel;   // "matmul_int8"
  std::string shape;    // "smollm2-135m qkv, n 960, k 576, m 512"
  Isa isa = Isa::kRef;  // of the kernel that runs
  RoofKind arithmetic = RoofKind::kF32;
  double operations = 0;  // a multiply-add is two
  double bytes = 0;       // to and from memory, each once
  int64_t footprint = 0;  // bytes that repeated calls go through
  // What the same work is measured with in turns: oneDNN, or "int8", Octavo's W8A8.
  const char* rival = "oneDNN";
  std::function<Contenders()> prepare;
};

// What the cases are made for.
struct CaseOptions {
  Isa isa = Isa::kRef;
  ThreadPool& pool;
  // With few rows a matmul reads its weights from memory, as in a model, where others come before
  // it is their turn again: calls go through so many bytes of distinct matrices.
  int64_t memory = 0;
};

// One line of families.inc: appends the cases of a kernel family.
using AddCases = void(const CaseOptions& options, std::vector<KernelCase>* cases);

#define OCTAVO_BENCH_FAMILY(function) AddCases function;
#include "bench/families.inc"
#undef OCTAVO_BENCH_FAMILY

}  // namespace octavo
