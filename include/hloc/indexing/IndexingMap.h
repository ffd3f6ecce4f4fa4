#pragma once
// IndexingMap: which elements of one tensor are read to produce an element of another.
//
//   (d0, d1)[s0]{rt0} -> (d0 + rt0, s0, d1 / 4), domain: d0 in [0, 9], d1 in [0, 127], s0 in [0, 31], rt0 in [0, 5],
//   d1 + s0 in [0, 140]
//
// * dimension variables d: the point we map from (an output index, or thread and block ids)
// * range variables s: one-to-many (a reduced dimension, a vector lane, a loop iteration)
// * runtime variables rt: values known only at run time (dynamic-slice offsets); just their bounds are known
// * constraints: affine expressions with an interval they must lie in
//
// The domain is the points within the bounds of all variables that meet all constraints. Bounds are part of it as much
// as constraints are: simplification turns a constraint on one variable into its bounds, so code that guards by the
// domain must check a dimension whose operand is not known to respect its bounds, too (`th_x in [0, 99]` of 128
// threads).
//
// Expressions are mlir::AffineExpr (dims = d; symbols = range variables, then runtime variables). Intervals are closed.
// A worked example, the slice [2:10:2] of f32[16] composed with a transpose, is in tests/unit/indexing.

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hloc {

/// Closed interval [lower, upper]; empty if lower > upper. Arithmetic saturates at the ends of int64.
struct Interval {
  int64_t lower = 0;
  int64_t upper = -1;

  bool isEmpty() const { return lower > upper; }
  bool isPoint() const { return lower == upper; }
  bool contains(int64_t value) const { return lower <= value && value <= upper; }
  bool contains(const Interval &other) const {
    return other.isEmpty() || (lower <= other.lower && other.upper <= upper);
  }
  /// Number of points, saturating.
  int64_t size() const;
  Interval intersect(const Interval &other) const;
  Interval unite(const Interval &other) const; ///< smallest interval that contains both
  Interval operator+(const Interval &other) const;
  Interval operator*(const Interval &other) const;
  Interval operator-() const;
  bool operator==(const Interval &) const = default;
};

/// A variable of a map: its bounds and, for printing, its name (empty: d<i>, s<i>, rt<i> by position).
struct IndexingVariable {
  Interval bounds;
  std::string name;
  bool operator==(const IndexingVariable &other) const { return bounds == other.bounds; }
};

struct LinearSum;
class DomainRanges;

class IndexingMap {
public:
  using Constraint = std::pair<mlir::AffineExpr, Interval>;

  /// `map` has one dim per dimension variable and one symbol per range, then per runtime variable. Constraints on a
  /// bare variable tighten its bounds, on a constant they are decided, on an expression already present they intersect;
  /// an infeasible one makes the map empty.
  IndexingMap(mlir::AffineMap map, llvm::ArrayRef<IndexingVariable> dims, llvm::ArrayRef<IndexingVariable> ranges,
              llvm::ArrayRef<IndexingVariable> runtimes, llvm::ArrayRef<Constraint> constraints = {});

  /// dims in [0, dimSizes[i]-1], symbols all range variables in [0, rangeSizes[i]-1].
  static IndexingMap fromSizes(mlir::AffineMap map, llvm::ArrayRef<int64_t> dimSizes,
                               llvm::ArrayRef<int64_t> rangeSizes = {});
  static IndexingMap identity(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> sizes);

  mlir::MLIRContext *context() const { return affineMap.getContext(); }
  mlir::AffineMap affine() const { return affineMap; }
  unsigned numResults() const { return affineMap.getNumResults(); }
  mlir::AffineExpr result(unsigned i) const { return affineMap.getResult(i); }
  llvm::ArrayRef<IndexingVariable> dims() const { return dimVariables; }
  llvm::ArrayRef<IndexingVariable> ranges() const { return rangeVariables; }
  llvm::ArrayRef<IndexingVariable> runtimes() const { return runtimeVariables; }
  llvm::ArrayRef<Constraint> constraints() const { return constraintList; }
  bool isKnownEmpty() const { return knownEmpty; }

  void addConstraint(mlir::AffineExpr expression, Interval interval);

  /// Bounds of an expression over this map's variables; uses constraints that match a subexpression exactly.
  Interval range(mlir::AffineExpr expression) const;

  /// Canonical form; same domain, and equal on every point of it. Idempotent. Returns whether anything changed. Bounds
  /// of range variables shrink to what constraints allow (fewer iterations), those of the others by constraints on them
  /// alone. (floordiv and mod are rounded towards minus infinity; divisors are positive constants.)
  bool simplify();
  /// Drops range and runtime variables that no result uses, with the constraints that mention only them, if those
  /// constraints are satisfiable for every remaining point. Returns a bit per dropped symbol.
  llvm::SmallVector<bool> removeUnusedSymbols();
  llvm::SmallVector<bool> removeUnusedDims();
  /// Range (and runtime) variables become trailing dimension variables.
  IndexingMap symbolsToDims() const;
  IndexingMap withResults(llvm::ArrayRef<unsigned> which) const;

  /// The results at a point, or nothing if the point violates bounds or constraints.
  std::optional<llvm::SmallVector<int64_t>> evaluate(llvm::ArrayRef<int64_t> dims,
                                                     llvm::ArrayRef<int64_t> symbols) const;

  /// Structural equality (names ignored); maps that denote the same function may differ unless both are simplified.
  bool operator==(const IndexingMap &other) const;

  std::string toString() const;

private:
  friend class SimplifiedMaps;
  mlir::AffineMap affineMap;
  llvm::SmallVector<IndexingVariable, 4> dimVariables, rangeVariables, runtimeVariables;
  llvm::SmallVector<Constraint, 2> constraintList;
  bool knownEmpty = false;
  bool isSimplified = false; ///< nothing changed since simplify(), which then costs nothing
  void makeEmpty();
  void tightenVariable(mlir::AffineExpr variable, Interval interval);
  bool simplifyConstraints();
  bool simplifyConstraint(size_t index);
  bool tightenLoops(const LinearSum &sum, Interval interval, DomainRanges &ranges);
  bool simplifyResults();
  llvm::SmallVector<bool> removeUnused(bool dimsToo, bool symbolsToo);
};

/// `second` after `first`: x -> second(first(x)). Dims are first's; range variables are second's then first's, runtime
/// variables likewise; constraints of both, and every first result must lie in the bounds of second's dimension
/// variable (this is where bounds checks come from). Not simplified.
IndexingMap compose(const IndexingMap &first, const IndexingMap &second);

/// Parses the text form (`/` and `floordiv`, `mod`, `ceildiv`, parentheses; `KNOWN EMPTY` is not parsed). On failure
/// returns nothing and sets `error` to a message with the offset. Never trusts the input: nesting and sizes are
/// limited.
std::optional<IndexingMap> parseIndexingMap(llvm::StringRef text, mlir::MLIRContext *context, std::string &error);

llvm::hash_code hash_value(const IndexingMap &map);

} // namespace hloc
