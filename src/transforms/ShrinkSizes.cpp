#include "ShrinkSizes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>

namespace hloc {

namespace {

/// Divides one size by a prime at a time, and others after it until all relations hold again.
class Shrinker {
public:
  Shrinker(const SizeRelations &relations, int64_t target) : relations(relations), target(target) {
    for (int64_t size : relations.sizes)
      small[size] = size;
    for (const SizeRelations::Product &product : relations.products) {
      bound.insert(product.left.begin(), product.left.end());
      bound.insert(product.right.begin(), product.right.end());
    }
    for (const SizeRelations::Sum &sum : relations.sums) {
      bound.insert(sum.parts.begin(), sum.parts.end());
      bound.insert(sum.whole);
    }
  }

  std::map<int64_t, int64_t> run() {
    while (divideOne()) {
    }
    for (auto &[size, value] : small)
      if (value > target && isFree(size))
        replace(value);
    return std::move(small);
  }

private:
  static constexpr int64_t largestThatStays = 4;
  static constexpr unsigned maxTries = 2000; ///< divisions in the search for one that all relations bear

  bool stays(int64_t size) const { return size <= largestThatStays || relations.fixed.contains(size); }
  bool isFree(int64_t size) const { return !stays(size) && !bound.contains(size); }
  int64_t of(int64_t size) const {
    auto found = small.find(size);
    return found == small.end() ? size : found->second;
  }

  static llvm::SmallVector<int64_t> primesOf(int64_t value) {
    llvm::SmallVector<int64_t> primes;
    for (int64_t p = 2; p * p <= value; ++p)
      for (; value % p == 0; value /= p)
        if (primes.empty() || primes.back() != p)
          primes.push_back(p);
    if (value > 1 && (primes.empty() || primes.back() != value))
      primes.push_back(value);
    return primes;
  }

  /// The largest size that can be divided, by the largest prime that can be.
  bool divideOne() {
    std::vector<int64_t> large;
    for (auto [size, value] : small)
      if (value > target && !stays(size) && !hopeless.contains({size, value}))
        large.push_back(size);
    llvm::stable_sort(large, [&](int64_t a, int64_t b) { return small[a] > small[b]; });
    for (int64_t size : large) {
      for (int64_t prime : llvm::reverse(primesOf(small[size]))) {
        tries = 0;
        if (divide(size, prime))
          return true;
      }
      hopeless.insert({size, small[size]});
    }
    return false;
  }

  bool divide(int64_t size, int64_t prime) {
    if (stays(size) || !small.contains(size))
      return false;
    int64_t &value = small[size];
    if (value % prime || value / prime < 2 || ++tries > maxTries)
      return false;
    value /= prime;
    if (settle(prime))
      return true;
    value *= prime;
    return false;
  }

  bool divideOneOf(llvm::ArrayRef<int64_t> sizes, int64_t prime) {
    SizeRelations::Sizes candidates(sizes.begin(), sizes.end());
    llvm::sort(candidates);
    candidates.erase(llvm::unique(candidates), candidates.end());
    llvm::stable_sort(candidates, [&](int64_t a, int64_t b) { return of(a) > of(b); });
    return llvm::any_of(candidates, [&](int64_t size) { return divide(size, prime); });
  }

  __int128 productOf(llvm::ArrayRef<int64_t> sizes) const {
    __int128 product = 1;
    for (int64_t size : sizes)
      product *= of(size);
    return product;
  }

  /// Do all relations hold, or can they be made to?
  bool settle(int64_t prime) {
    for (const SizeRelations::Product &product : relations.products) {
      const __int128 left = productOf(product.left), right = productOf(product.right);
      if (left != right)
        return divideOneOf(left > right ? product.left : product.right, prime);
    }
    for (const SizeRelations::Sum &sum : relations.sums) {
      int64_t parts = 0;
      for (int64_t part : sum.parts)
        parts += of(part);
      if (parts != of(sum.whole))
        return parts > of(sum.whole) ? divideOneOf(sum.parts, prime) : divide(sum.whole, prime);
    }
    for (const SizeRelations::Fit &fit : relations.fits)
      if (!holds(fit))
        return divide(fit.inner, prime);
    return true;
  }

  bool holds(const SizeRelations::Fit &fit) const { return (of(fit.inner) - 1) * fit.stride + 1 <= of(fit.outer); }

  /// A size in no product or sum, which nothing smaller divides: something near the target, as odd as it is.
  void replace(int64_t &value) {
    const int64_t before = value;
    for (value = target - (before - target) % 2; value >= 2; value -= 2)
      if (llvm::all_of(relations.fits, [&](const SizeRelations::Fit &fit) { return holds(fit); }))
        return;
    value = before;
  }

  const SizeRelations &relations;
  const int64_t target;
  std::map<int64_t, int64_t> small;
  std::set<int64_t> bound; ///< in products and sums
  std::set<std::pair<int64_t, int64_t>> hopeless;
  unsigned tries = 0;
};

} // namespace

std::map<int64_t, int64_t> shrinkSizes(const SizeRelations &relations, int64_t target) {
  return Shrinker(relations, target).run();
}

} // namespace hloc
