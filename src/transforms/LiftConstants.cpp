// Large constants of fusions -> operands: one array in memory, however many kernels read it, instead of text in each.

#include "FuseGroups.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <map>

namespace hloc {

namespace {

/// Smaller tables stay in the code of the kernels: a buffer more would cost as much.
constexpr int64_t mostBytesInCode = 1024;
/// Fusions of so many operands keep their constants: what a kernel can be given is limited.
constexpr unsigned mostOperands = 256;

bool isLarge(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Constant && instr.shape().isArray() && instr.shape().byteSize() > mostBytesInCode &&
         !instr.literal().isElided() && !instr.literal().isSplat();
}

/// A constant that has become a parameter.
struct Lifted {
  Shape shape;
  const Literal *literal;
  SourceRange range;
};

/// Constants of one computation between kernels, each value in each layout once.
class LiftedConstants {
public:
  HloInstruction *get(const Lifted &lifted, HloInstruction *reader, HloEditor &editor) {
    HloInstruction *&made = known[{lifted.shape.toString(), llvm::toStringRef(lifted.literal->bytes())}];
    if (!made)
      made = editor.insert({Opcode::Constant, "", lifted.shape, {}, {}, lifted.range, 0, lifted.literal}, reader);
    return made;
  }

private:
  std::map<std::pair<std::string, llvm::StringRef>, HloInstruction *> known;
};

/// The bodies that fusions between kernels call, which are free to be replaced, and nobody else.
std::vector<HloComputation *> findBodies(const HloModule &module, llvm::ArrayRef<HloComputation *> control) {
  llvm::DenseMap<const HloComputation *, size_t> numCalls = countCalls(module);
  llvm::MapVector<HloComputation *, size_t> numFusions;
  for (HloComputation *computation : control) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (instr->opcode() == Opcode::Fusion && !editor.isOrdered(instr))
        ++numFusions[instr->computation(AttributeKey::Calls)];
  }
  std::vector<HloComputation *> bodies;
  for (auto [body, number] : numFusions)
    if (numCalls[body] == number)
      bodies.push_back(body);
  return bodies;
}

/// Makes the large constants of a fusion's body its last parameters.
std::vector<Lifted> liftFrom(HloComputation &body) {
  std::vector<Lifted> lifted;
  const size_t room = mostOperands - std::min<size_t>(body.numParameters(), mostOperands);
  llvm::SmallVector<HloInstruction *> large;
  llvm::copy_if(body.instructions(), std::back_inserter(large), [](auto *instr) { return isLarge(*instr); });
  large.truncate(std::min(large.size(), room));
  if (large.empty())
    return lifted;
  HloEditor editor(body);
  HloInstruction *first = editor.first();
  for (HloInstruction *constant : large) {
    if (editor.isOrdered(constant))
      continue;
    lifted.push_back({constant->shape(), &constant->literal(), constant->range()});
    HloBuilder builder(editor, first);
    builder.setRange(constant->range());
    HloInstruction *parameter = builder.parameter(int64_t(body.numParameters()), constant->shape(), constant->name());
    editor.replaceAllUses(constant, parameter);
    if (constant == first)
      first = editor.next(constant);
    editor.erase(constant);
  }
  return lifted;
}

} // namespace

PassResult liftConstants(HloModule &module, HloPassContext &context) {
  const std::vector<HloComputation *> control = controlComputations(module);
  llvm::DenseMap<const HloComputation *, std::vector<Lifted>> liftedFrom;
  for (HloComputation *body : findBodies(module, control))
    if (std::vector<Lifted> lifted = liftFrom(*body); !lifted.empty())
      liftedFrom[body] = std::move(lifted);
  if (liftedFrom.empty())
    return PassResult::Unchanged;
  for (HloComputation *computation : control) {
    LiftedConstants constants;
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr);
      auto lifted = instr->opcode() == Opcode::Fusion ? liftedFrom.find(instr->computation(AttributeKey::Calls))
                                                      : liftedFrom.end();
      if (lifted == liftedFrom.end())
        continue;
      llvm::SmallVector<HloInstruction *> operands(instr->operands());
      for (const Lifted &constant : lifted->second)
        operands.push_back(constants.get(constant, instr, editor));
      editor.replaceAllUses(instr, HloBuilder(editor, instr).clone(*instr, operands));
      editor.erase(instr);
    }
  }
  return PassResult::Changed;
}

} // namespace hloc
