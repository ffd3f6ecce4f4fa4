#include "ComputationPartitioner.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/MapPool.h"
#include "hloc/support/Check.h"
#include "hloc/support/Names.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hloc {
namespace {

// A subgraph function is a set of instructions that all their readers, within it, read at one index: each is then
// computed once for each call. An instruction starts a function of its own if it is read at two different indices or
// from two functions (inlined it would be computed once for each, and the copies multiply from one such instruction to
// the next), or if a limit below is met. Invariants: every live instruction belongs to one function at most; a
// function's roots are read from outside, all else only from inside; parameters and other leaves belong to none, they
// are cheaper to read again than to pass on.

/// Functions larger than this make passes slow: the next instruction starts a new one. Ours, not tuned.
constexpr size_t maxFunctionSize = 2000;
/// Emission recurses where indices change; this bounds its depth, far below what the stack has room for.
constexpr unsigned maxIndexChanges = 128;

/// How an instruction is read: map from its function's indices, and which dynamic offsets or loop variables are part of
/// it. Two reads with different dynamic offsets, or in the loops of two instructions, are never the same, though their
/// maps may look equal: a row's elements and, for each of them, the sum of the row.
struct Access {
  unsigned map = MapPool::same; ///< of the partitioner's pool
  unsigned offsets = 0;         ///< 0: none
  bool operator==(const Access &) const = default;
};

struct Uses {
  int function = -1;
  std::optional<Access> access;
  bool severalFunctions = false;
  bool severalAccesses = false;
  bool repeated = false; ///< one user evaluates it at several places, or in a way no map describes
  unsigned indexChanges = 0;
};

/// Does `instr` evaluate the operand several times per result element, other than in a loop?
bool evaluatesRepeatedly(const HloInstruction &instr, unsigned operand, const IndexingMap &map) {
  const std::optional<unsigned> firstIndex = firstIndexOperand(instr.opcode());
  const bool isAsked = (firstIndex && operand >= *firstIndex) || instr.opcode() == Opcode::BitcastConvert ||
                       instr.opcode() == Opcode::Bitcast;
  return isAsked && !map.ranges().empty();
}

bool onlyMoves(const HloInstruction &instr) { return hasTrait(instr.opcode(), OpcodeTrait::Rearranges); }

class Partitioner {
public:
  Partitioner(const FusionGraph &graph, std::vector<Subgraph> &functions, std::vector<int> &owner, MLIRContext *context)
      : graph(graph), functions(functions), owner(owner), context(context),
        uses(graph.computation().instructions().size()), injected(uses.size(), false),
        needsInjected(uses.size(), false) {}

  void run(ArrayRef<FunctionRequest> requests) {
    for (const FunctionRequest &request : requests)
      addRequest(request);
    for (const HloInstruction *instr : graph.instructions())
      needsInjected[instr->id()] =
          injected[instr->id()] || llvm::any_of(instr->operands(), [&](const HloInstruction *operand) {
            return needsInjected[behindTuple(*operand).id()];
          });
    for (const HloInstruction *instr : llvm::reverse(graph.instructions()))
      if (!isLeaf(*instr) && !injected[instr->id()] && uses[instr->id()].function >= 0)
        place(*instr);
    forwardInjected(requests.size());
    for (Subgraph &function : functions)
      function.name = uniqueName(function);
  }

private:
  void addRequest(const FunctionRequest &request) {
    Subgraph &function = functions.emplace_back();
    function.roots = request.roots;
    function.indexSizes = request.indexSizes;
    function.injected = request.injected;
    for (const InjectedValue &value : request.injected)
      injected[value.instr->id()] = true;
    for (const FunctionRoot &root : request.roots)
      addUse(behindTuple(*root.instr), functions.size() - 1, Access{pool.intern(root.map), 0}, 0);
  }

  void addUse(const HloInstruction &instr, int function, Access access, unsigned indexChanges) {
    Uses &use = uses[instr.id()];
    if (use.function >= 0 && use.function != function)
      use.severalFunctions = true;
    if (use.access && *use.access != access)
      use.severalAccesses = true;
    use.function = function;
    use.access = access;
    use.indexChanges = std::max(use.indexChanges, indexChanges);
  }

  void place(const HloInstruction &instr) {
    Uses &use = uses[instr.id()];
    // What is made of injected values stays with them, however large the function gets: fewer arguments to pass on.
    bool isTooLarge =
        functions[use.function].instructions.size() >= maxFunctionSize || use.indexChanges > maxIndexChanges;
    bool startsFunction = use.severalFunctions || use.severalAccesses || use.repeated || !use.access ||
                          (isTooLarge && !needsInjected[instr.id()]);
    if (startsFunction)
      start(instr, use);
    Subgraph &function = functions[use.function];
    function.instructions.push_back(&instr);
    function.onlyMoves &= onlyMoves(instr);
    owner[instr.id()] = use.function;
    for (unsigned i = 0; i < instr.numOperands(); ++i)
      addOperandUse(instr, i, use);
  }

  static void addInjected(Subgraph &function, InjectedValue value) {
    if (!llvm::is_contained(function.injected, value))
      function.injected.push_back(value);
  }

  /// What `reader` reads of `instr`, which is injected.
  static void addRead(Subgraph &function, const HloInstruction &reader, const HloInstruction &instr) {
    if (reader.opcode() == Opcode::GetTupleElement)
      return addInjected(function, {&instr, unsigned(reader.intOr(AttributeKey::Index, 0))});
    for (unsigned i = 0; i < instr.numResults(); ++i)
      addInjected(function, {&instr, i});
  }

  /// A function that was not requested gets injected values from its callers. Callees come after their callers.
  void forwardInjected(size_t numRequests) {
    for (size_t number = functions.size(); number-- > numRequests;) {
      Subgraph &function = functions[number];
      for (const HloInstruction *instr : function.instructions) {
        if (!needsInjected[instr->id()])
          continue;
        for (const HloInstruction *written : instr->operands()) {
          const HloInstruction &operand = behindTuple(*written);
          if (injected[operand.id()])
            addRead(function, *instr, operand);
          else if (needsInjected[operand.id()] && size_t(owner[operand.id()]) != number)
            for (const InjectedValue &value : functions[owner[operand.id()]].injected)
              addInjected(function, value);
        }
      }
      llvm::sort(function.injected, [](const InjectedValue &a, const InjectedValue &b) {
        return std::pair(a.instr->id(), a.result) < std::pair(b.instr->id(), b.result);
      });
    }
  }

  /// A number for the loop in which an instruction evaluates its operands.
  unsigned loopOf(const HloInstruction &instr) {
    auto [entry, isNew] = loops.try_emplace(&instr, 0);
    if (isNew)
      entry->second = ++lastOffsets;
    return entry->second;
  }

  void start(const HloInstruction &instr, Uses &use) {
    const Shape &shape = instr.resultShape();
    IndexingMap identity = IndexingMap::identity(context, shape.dims());
    use = Uses{};
    use.function = functions.size();
    use.access = Access{pool.intern(identity), 0};
    Subgraph &function = functions.emplace_back();
    function.indexSizes.assign(shape.dims().begin(), shape.dims().end());
    for (unsigned i = 0; i < instr.numResults(); ++i)
      function.roots.push_back({&instr, i, identity});
  }

  void addOperandUse(const HloInstruction &instr, unsigned number, const Uses &use) {
    const HloInstruction &operand = behindTuple(*instr.operand(number));
    if (isLeaf(operand))
      return;
    if (readsOperandsInPlace(instr) && operand.shape().isArray() && operand.shape().sameDims(instr.shape())) {
      addUse(operand, use.function, *use.access, use.indexChanges);
      return;
    }
    std::optional<OperandIndexing> indexing = operandIndexing(instr, number, context);
    if (!indexing) {
      addUse(operand, use.function, *use.access, use.indexChanges + 1);
      uses[operand.id()].repeated = true;
      return;
    }
    uses[operand.id()].repeated |= evaluatesRepeatedly(instr, number, indexing->map);
    Access access = *use.access;
    if (!indexing->runtimes.empty())
      access.offsets = ++lastOffsets;
    else if (!indexing->map.ranges().empty())
      access.offsets = loopOf(instr);
    if (!indexing->map.isKnownEmpty() && !pool[access.map].isKnownEmpty())
      access.map = pool.composed(access.map, pool.intern(std::move(indexing->map))).map;
    else
      uses[operand.id()].repeated = true;
    addUse(operand, use.function, access, use.indexChanges + 1);
  }

  std::string uniqueName(const Subgraph &function) {
    std::string name = graph.computation().name().str();
    constexpr size_t maxNamed = 3;
    for (const FunctionRoot &root : ArrayRef(function.roots).take_front(maxNamed))
      name += "_" + root.instr->name().str();
    if (function.roots.size() > maxNamed)
      name += "_and_" + std::to_string(function.roots.size() - maxNamed) + "_more";
    return names.unique(identifierOf(name));
  }

  const FusionGraph &graph;
  std::vector<Subgraph> &functions;
  std::vector<int> &owner;
  MLIRContext *context;
  MapPool pool;
  std::vector<Uses> uses;
  llvm::BitVector injected, needsInjected;
  unsigned lastOffsets = 0;
  llvm::DenseMap<const HloInstruction *, unsigned> loops;
  UniqueNames names;
};

} // namespace

PartitionedComputation::PartitionedComputation(const FusionGraph &graph, ArrayRef<FunctionRequest> requests,
                                               MLIRContext *context)
    : owner(graph.computation().instructions().size(), -1) {
  Partitioner(graph, functions, owner, context).run(requests);
}

std::string PartitionedComputation::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  for (const Subgraph &function : functions) {
    os << function.name << ":";
    for (const HloInstruction *instr : llvm::reverse(function.instructions))
      os << " " << instr->name();
    os << "\n";
  }
  return result;
}

} // namespace hloc
