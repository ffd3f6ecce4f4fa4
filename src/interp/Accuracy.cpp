#include "interp/Accuracy.h"

#include "interp/ElementwiseRules.h"

#include "hloc/hlo/BesideOne.h"
#include "hloc/support/Check.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hloc::interp {

bool rounds(Opcode opcode) { return !hasTrait(opcode, OpcodeTrait::Exact); }

namespace {

struct Row {
  Opcode opcode;
  ElementType type;
  double ulps;
};
constexpr Row rows[] = {
#define HLOC_ACCURACY(opcode, type, ulps) {Opcode::opcode, ElementType::type, ulps},
#include "interp/Accuracy.def"
};
constexpr Row subnormalRows[] = {
#define HLOC_ACCURACY(opcode, type, ulps)
#define HLOC_ACCURACY_SUBNORMAL(opcode, type, ulps) {Opcode::opcode, ElementType::type, ulps},
#include "interp/Accuracy.def"
};

constexpr Opcode ofEveryFloat[] = {
#define HLOC_ACCURACY(opcode, type, ulps)
#define HLOC_ACCURACY_OF_EVERY_FLOAT(opcode) Opcode::opcode,
#include "interp/Accuracy.def"
    Opcode::Parameter, // of which nobody asks; no array is empty
};

const Row *find(llvm::ArrayRef<Row> among, Opcode opcode, ElementType type) {
  const Row *row = llvm::find_if(among, [&](const Row &row) { return row.opcode == opcode && row.type == type; });
  return row == among.end() ? nullptr : row;
}

/// What other compilers' functions are held to where they have no better reason to differ: CUDA's and XLA's own tables
/// grant most functions of f32 and f64 up to 4 units, and 16-bit floats are rounded from f32.
double customary(ElementType type) {
  ElementType part = componentType(type);
  return part == ElementType::F32 || part == ElementType::F64 ? 4 : 0.6;
}

/// Types of which not every value was measured: a sample's largest error is a little short of the largest there is.
double margin(Opcode opcode, ElementType type) {
  if (type == ElementType::F32)
    return llvm::is_contained(ofEveryFloat, opcode) ? 1.02 : 1.1; // approximate instructions have one seed there
  return bitWidth(type) > 16 ? 1.25 : 1;
}

} // namespace

Permitted permitted(const HloInstruction &instr, Backend backend) {
  ElementType type = instr.operand(0)->shape().elementType();
  if (instr.opcode() == Opcode::Convert)
    type = instr.shape().elementType();
  const Row *row = find(rows, instr.opcode(), type), *subnormal = find(subnormalRows, instr.opcode(), type);
  Permitted made;
  made.ulps = row ? row->ulps : rounds(instr.opcode()) ? customary(type) : 0;
  bool oneRounding = instr.opcode() == Opcode::Add || instr.opcode() == Opcode::Subtract ||
                     instr.opcode() == Opcode::Convert || (instr.opcode() == Opcode::Multiply && !isComplex(type));
  if (oneRounding)
    made.ulps = 0.5; // no more, whatever was measured
  if (made.ulps > 0.5)
    made.ulps *= margin(instr.opcode(), type);
  if (isTanhBesideOne(instr))
    made.leastUnit = 0x1p-24; // as near 1
  made.subnormalUlps = subnormal ? subnormal->ulps * margin(instr.opcode(), type) : made.ulps;
  if (backend == Backend::Other && made.ulps > 0.5) {
    made.ulps = std::max(made.ulps, customary(type));
    // libdevice's powf, contracted as XLA and others do, is off by up to 85 units.
    if (instr.opcode() == Opcode::Power && componentType(type) == ElementType::F32)
      made.ulps = std::max(made.ulps, 90.0);
    made.subnormalUlps = 0x1p24; // flushed to zero
  }
  return made;
}

bool adds(const HloInstruction &instr) {
  if (!instr.shape().isArray() || !isElementwise(instr.opcode()))
    return false;
  const ElementType type = instr.shape().elementType();
  switch (elementwiseRule(instr.opcode()).products) {
  case ProductRule::Added:
    return true;
  case ProductRule::AddedInside:
    return type == ElementType::F32 || type == ElementType::F64;
  case ProductRule::Rounded:
    return false;
  }
  HLOC_UNREACHABLE("no rule for products");
}

double sumRoundings(double terms) { return std::min(terms, 2 * std::sqrt(terms)); }

double sumRoundingsOfLarge(double terms) { // of even errors, each of at most one roundoff
  return std::min(terms, 6 / std::numbers::sqrt3 * std::sqrt(terms));
}

} // namespace hloc::interp
