#pragma once
// What indices and conditions of a kernel are made of: affine expressions over variables that are threads, blocks,
// rounds of loops, values of memory, or functions of other expressions that are not affine (a swizzle's xor, a
// minimum).
//
//   th mod 16 + (d xor 3), d = (th floordiv 16) mod 4: two variables, of which the second is a function of the first

#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/BitVector.h"

#include <vector>

namespace hloc::prove {

using Constraint = IndexingMap::Constraint;

enum class VariableKind : uint8_t {
  Thread,
  Block,
  Round, ///< of a loop, or an element of a vector: a thread goes through all values
  State, ///< of a loop that several threads go through together: one of the values
  Data,  ///< what memory has: any of the values, or none of them
  Function
};

enum class FunctionKind : uint8_t {
  Xor,
  And,
  Or,
  Minimum,
  Maximum,
  Select,
  Equal,
  Less,
  Divide,
  Remainder,
  Product,
  ShiftRight
};

struct Variable {
  VariableKind kind = VariableKind::Data;
  Interval bounds;
  bool uniform = false;    ///< Data: the same for all threads of a block
  bool everywhere = false; ///< Data: the same for all threads of the grid, whenever it is read
  FunctionKind function = FunctionKind::Xor;
  llvm::SmallVector<mlir::AffineExpr, 3> arguments; ///< Function: of variables before it
};

class Variables {
public:
  explicit Variables(mlir::MLIRContext *context) : context(context) {}

  mlir::AffineExpr add(VariableKind kind, Interval bounds, bool uniform = false, bool everywhere = false);
  mlir::AffineExpr constant(int64_t value) const { return mlir::getAffineConstantExpr(value, context); }
  /// Equal ones are one variable; what has constants as arguments is a constant.
  mlir::AffineExpr function(FunctionKind kind, llvm::ArrayRef<mlir::AffineExpr> arguments);

  const Variable &operator[](unsigned i) const { return variables[i]; }
  unsigned size() const { return unsigned(variables.size()); }
  /// Bounds of an expression. `known`: what holds where it is asked for; used where it is about a subexpression.
  Interval range(mlir::AffineExpr expression, llvm::ArrayRef<Constraint> known = {}) const;

  /// All variables that an expression depends on, arguments of functions included.
  void collect(mlir::AffineExpr expression, llvm::BitVector &into) const;
  bool dependsOn(mlir::AffineExpr expression, VariableKind kind) const;
  /// All threads of a block have the same value, in the same round of loops that they go through together.
  bool isUniform(mlir::AffineExpr expression) const;
  /// It is one value, of data if not of constants.
  bool isEverywhere(mlir::AffineExpr expression) const;

  mlir::MLIRContext *const context;

private:
  Interval rangeOfFunction(FunctionKind kind, llvm::ArrayRef<Interval> arguments) const;
  std::vector<Variable> variables;
};

/// What a function has at values.
int64_t apply(FunctionKind kind, llvm::ArrayRef<int64_t> arguments);

/// Values of variables, and of expressions over them. Functions are computed when they are first asked for.
class Point {
public:
  explicit Point(const Variables &variables)
      : variables(variables), values(variables.size()), known(variables.size()) {}
  void set(unsigned variable, int64_t value);
  /// Variables that nobody has set are at their lower bound.
  int64_t operator[](unsigned variable) const;
  int64_t evaluate(mlir::AffineExpr expression) const;
  bool holds(llvm::ArrayRef<Constraint> constraints) const;

private:
  const Variables &variables;
  mutable std::vector<int64_t> values;
  mutable llvm::BitVector known;
};

/// Expressions, made ready to be evaluated many times: at points of `inputs`, whatever else they depend on is at its
/// lower bound.
class Program {
public:
  explicit Program(const Variables &variables) : variables(variables) {}
  /// Its number among the results.
  unsigned add(mlir::AffineExpr expression);
  /// `values`: of all variables; those that are functions are overwritten.
  void run(llvm::MutableArrayRef<int64_t> values) {
    for (const Step &step : steps)
      results[step.result] = evaluate(step, values);
  }
  int64_t result(unsigned i) const { return results[outputs[i]]; }

private:
  enum class StepKind : uint8_t { Constant, Variable, Add, Multiply, FloorDiv, Mod, CeilDiv, Function };
  struct Step {
    StepKind kind;
    FunctionKind function;
    unsigned result, lhs = 0, rhs = 0, third = 0;
    int64_t constant = 0;
  };
  unsigned emit(mlir::AffineExpr expression);
  int64_t evaluate(const Step &step, llvm::ArrayRef<int64_t> values) const;

  const Variables &variables;
  std::vector<Step> steps;
  std::vector<int64_t> results;
  std::vector<unsigned> outputs;
  llvm::DenseMap<mlir::AffineExpr, unsigned> known;
};

} // namespace hloc::prove
