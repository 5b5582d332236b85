// Blocked Cholesky factorisation and triangular inverse on the thread pool, float32.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// a [k, k] row-major, symmetric, of which the lower triangle is read: a = L L^T, and L replaces the
// lower triangle (the upper one is left with rubbish). False when a pivot is not positive: then a
// is spoilt. Work is cut into fixed tiles: the result does not depend on the number of threads.
bool CholeskyInPlace(std::span<float> a, int64_t k, Isa isa, ThreadPool& pool);

// L^-1 of a lower triangular `lower` [k, k] whose upper triangle is not read, into `inverse`
// [k, k], zero above the diagonal.
void InvertLowerTriangle(std::span<const float> lower, int64_t k, std::span<float> inverse, Isa isa,
                         ThreadPool& pool);

}  // namespace octavo
