#pragma once
// ComputationPartitioner: divides a fusion into functions so that no element is computed twice by the code, however
// often and from wherever it is read.
//
// An instruction joins its user's function if all its users are in one function and read it through one identical
// indexing map; otherwise it starts a function of its own, which is called.
//
//   %l = log(%p);  %t = transpose(%l);  %a = add(%l, %t)     ->   {a}, {t}... no: %l is read through two maps, so
//   functions: {add, transpose} and {log}. With `%t` read twice differently as well, three.
//
// Parameters, constants and iotas belong to no function: they are read or made wherever they are needed.
// Runs in time linear in the number of instructions.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/indexing/IndexingMap.h"

#include <string>
#include <vector>

namespace hloc {

/// A value that a function returns: `map` leads from the function's indices to the instruction's.
struct FunctionRoot {
  const HloInstruction *instr;
  unsigned result = 0;
  IndexingMap map;
};

/// A result of an instruction that is not computed by a function but given to it, as an argument.
struct InjectedValue {
  const HloInstruction *instr;
  unsigned result = 0;
  InjectedValue(const HloInstruction *instr, unsigned result = 0) : instr(instr), result(result) {}
  const Shape &shape() const { return instr->resultShape(result); }
  bool operator==(const InjectedValue &) const = default;
};

/// A function that the kernel calls. A value is injected for the index at which it is called: whoever requests the
/// function knows that all its code reads the value there, functions that it calls included.
struct FunctionRequest {
  std::vector<FunctionRoot> roots;
  llvm::SmallVector<int64_t> indexSizes;
  llvm::SmallVector<InjectedValue> injected;
};

struct Subgraph {
  std::string name; ///< unique in the computation, an identifier
  std::vector<FunctionRoot> roots;
  llvm::SmallVector<int64_t> indexSizes;
  /// As requested; of other functions, what their instructions and the functions they call read, by instruction.
  llvm::SmallVector<InjectedValue> injected;
  std::vector<const HloInstruction *> instructions; ///< users before operands
  bool onlyMoves = true;                            ///< nothing is computed, values are only moved
};

class PartitionedComputation {
public:
  /// One subgraph per request, in that order, then the others, users before operands.
  PartitionedComputation(const FusionGraph &graph, llvm::ArrayRef<FunctionRequest> requests,
                         mlir::MLIRContext *context);

  llvm::ArrayRef<Subgraph> subgraphs() const { return functions; }
  /// The subgraph an instruction is in; -1 for parameters, constants, iotas and injected instructions.
  int subgraphOf(const HloInstruction &instr) const { return owner[instr.id()]; }
  bool belongsTo(const HloInstruction &instr, const Subgraph &subgraph) const {
    return subgraphOf(instr) == int(&subgraph - functions.data());
  }

  /// One line per subgraph, `name: instr instr ...`, for tests and dumps.
  std::string toString() const;

private:
  std::vector<Subgraph> functions;
  std::vector<int> owner;
};

/// Is `instr` emitted where it is read instead of in a function?
bool isLeaf(const HloInstruction &instr);

} // namespace hloc
