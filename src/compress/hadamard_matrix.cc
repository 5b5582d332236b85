#include "compress/hadamard_matrix.h"

#include <array>

namespace octavo {

namespace {

constexpr int64_t kLargestCore = 1024;
constexpr size_t kHighestPower = 3;

// Coefficients of a polynomial below x^3 over the integers modulo a prime.
using Element = std::array<int64_t, kHighestPower>;

// The field of p^e elements: polynomials modulo x^e + c1 x + c0, which has no root.
class Field {
 public:
  // None where q is no p^e with e up to 3.
  static std::optional<Field> Make(int64_t q) {
    int64_t p = 2;
    while (p * p <= q && q % p != 0) ++p;
    if (q % p != 0) p = q;
    size_t e = 0;
    int64_t rest = q;
    for (; rest % p == 0; rest /= p) ++e;
    if (q < 3 || rest != 1 || e > kHighestPower) return std::nullopt;
    return Field(p, e, q);
  }

  int64_t size() const { return q_; }

  // 0 of zero, 1 of a square, -1 of all others: of a - b.
  int8_t CharacterOfDifference(int64_t a, int64_t b) const {
    const Element x = At(a);
    const Element y = At(b);
    Element difference{};
    for (size_t i = 0; i < e_; ++i) difference[i] = (x[i] - y[i] + p_) % p_;
    return characters_[static_cast<size_t>(IndexOf(difference))];
  }

 private:
  Field(int64_t p, size_t e, int64_t q) : p_(p), e_(e), q_(q) {
    FindModulus();
    characters_.assign(static_cast<size_t>(q), -1);
    for (int64_t i = 0; i < q; ++i) {
      const Element x = At(i);
      characters_[static_cast<size_t>(IndexOf(Product(x, x)))] = 1;
    }
    characters_[0] = 0;
  }

  // Polynomials of degree 2 and 3 without a root are irreducible.
  void FindModulus() {
    const auto has_root = [&] {
      for (int64_t x = 0; x < p_; ++x) {
        int64_t power = 1;
        for (size_t i = 0; i < e_; ++i) power = power * x % p_;
        if ((power + c1_ * x + c0_) % p_ == 0) return true;
      }
      return false;
    };
    if (e_ == 1) return;
    for (c1_ = 0; c1_ < p_; ++c1_) {
      for (c0_ = 1; c0_ < p_; ++c0_) {
        if (!has_root()) return;
      }
    }
  }

  Element At(int64_t index) const {
    Element element{};
    for (size_t i = 0; i < e_; ++i, index /= p_) element[i] = index % p_;
    return element;
  }
  int64_t IndexOf(const Element& element) const {
    int64_t index = 0;
    for (size_t i = e_; i > 0; --i) index = index * p_ + element[i - 1];
    return index;
  }

  Element Product(const Element& a, const Element& b) const {
    std::array<int64_t, 2 * kHighestPower - 1> product{};
    for (size_t i = 0; i < e_; ++i) {
      for (size_t j = 0; j < e_; ++j) product[i + j] = (product[i + j] + a[i] * b[j]) % p_;
    }
    // x^e = -c1 x - c0.
    for (size_t i = 2 * e_ - 2; e_ > 1 && i >= e_; --i) {
      product[i - e_] = (product[i - e_] + (p_ - c0_) * product[i]) % p_;
      product[i - e_ + 1] = (product[i - e_ + 1] + (p_ - c1_) * product[i]) % p_;
    }
    Element element{};
    for (size_t i = 0; i < e_; ++i) element[i] = product[i];
    return element;
  }

  int64_t p_;
  size_t e_;
  int64_t q_;
  int64_t c0_ = 0, c1_ = 0;
  std::vector<int8_t> characters_;  // of each element
};

// Zero on the diagonal and 1 or -1 elsewhere, of size q + 1: [[0, 1], [corner, Q]].
int8_t Conference(const Field& field, int8_t corner, int64_t i, int64_t j) {
  if (i == j) return 0;
  if (i == 0) return 1;
  if (j == 0) return corner;
  return field.CharacterOfDifference(i - 1, j - 1);
}

// I + C, C skew-symmetric.
std::optional<HadamardMatrix> PaleyOne(int64_t n) {
  if (n % 4 != 0) return std::nullopt;
  const auto field = Field::Make(n - 1);
  if (!field) return std::nullopt;
  HadamardMatrix matrix{.n = n, .elements = {}};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      matrix.elements.push_back(i == j ? int8_t{1} : Conference(*field, -1, i, j));
  }
  return matrix;
}

// Each element of a symmetric C becomes a block of 2 x 2: c [[1, 1], [1, -1]], on the diagonal [[1,
// -1], [-1, -1]].
std::optional<HadamardMatrix> PaleyTwo(int64_t n) {
  if (n % 4 != 0 || (n / 2 - 1) % 4 != 1) return std::nullopt;
  const auto field = Field::Make(n / 2 - 1);
  if (!field) return std::nullopt;
  HadamardMatrix matrix{.n = n, .elements = {}};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const bool last = i % 2 == 1 && j % 2 == 1;
      const bool first = i % 2 == 0 && j % 2 == 0;
      const int8_t c = Conference(*field, 1, i / 2, j / 2);
      if (i / 2 == j / 2) {
        matrix.elements.push_back(first ? 1 : -1);
      } else {
        matrix.elements.push_back(static_cast<int8_t>(last ? -c : c));
      }
    }
  }
  return matrix;
}

}  // namespace

std::optional<HadamardMatrix> HadamardCore(int64_t n) {
  int64_t odd = n;
  while (odd % 2 == 0) odd /= 2;
  if (odd == 1) return HadamardMatrix{.n = 1, .elements = {1}};
  for (int64_t size = 4 * odd; size <= kLargestCore && n % size == 0; size *= 2) {
    if (auto matrix = PaleyOne(size)) return matrix;
    if (auto matrix = PaleyTwo(size)) return matrix;
  }
  return std::nullopt;
}

}  // namespace octavo
