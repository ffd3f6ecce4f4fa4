// The indices of a gather are vectors, of slices scalars; each component is clamped to where a slice starts at most.
//
//   x = f32[9]; dynamic-slice(x, i), sizes {2}, i in [6, 20]: starts at 6 or 7
//
// All vectors move together: in run k each is the least that it may be plus k, or the greatest.

#include "interp/BoundIndices.h"

namespace hloc::interp {

namespace {

/// One component of the vectors in an index operand.
struct Component {
  size_t operand;
  int64_t number, numComponents, stride;
  int64_t greatest; ///< start of a slice

  bool has(int64_t element) const { return element / stride % numComponents == number; }
};

std::vector<Component> componentsOf(const HloInstruction &instr, llvm::ArrayRef<Bounded> indices) {
  const Shape &operand = instr.operand(0)->shape();
  std::vector<Component> components;
  if (instr.opcode() == Opcode::Gather) {
    const Shape &shape = indices[0].array().shape();
    const auto vectorDim = size_t(instr.intOr(AttributeKey::IndexVectorDim, 0));
    int64_t stride = 1;
    for (size_t dim = vectorDim + 1; dim < shape.rank(); ++dim)
      stride *= shape.dim(unsigned(dim));
    llvm::ArrayRef<int64_t> dims = instr.ints(AttributeKey::StartIndexMap);
    for (size_t i = 0; i < dims.size(); ++i)
      components.push_back({0, int64_t(i), int64_t(dims.size()), stride,
                            operand.dim(unsigned(dims[i])) - instr.ints(AttributeKey::SliceSizes)[size_t(dims[i])]});
    return components;
  }
  const Shape &slice = instr.opcode() == Opcode::DynamicSlice ? instr.shape() : instr.operand(1)->shape();
  for (size_t i = 0; i < indices.size() && indices.size() == operand.rank(); ++i)
    components.push_back({i, 0, 1, 1, operand.dim(unsigned(i)) - slice.dim(unsigned(i))});
  return components;
}

} // namespace

std::optional<std::vector<std::vector<Bounded>>> possibleIndices(const HloInstruction &instr,
                                                                 llvm::ArrayRef<Bounded> indices) {
  constexpr int64_t mostRuns = 64;
  std::vector<Component> components = componentsOf(instr, indices);
  std::vector<BoundsPtr> bounds;
  for (const Bounded &index : indices)
    bounds.push_back(boundsOrPoint(index));
  auto start = [](const Literal &literal, int64_t element, const Component &component) {
    const int64_t value = literal.getInt(element);
    const bool isHuge = literal.shape().elementType() == ElementType::U64 && value < 0;
    return isHuge ? component.greatest : std::clamp<int64_t>(value, 0, component.greatest);
  };
  std::vector<int64_t> counts;
  int64_t numRuns = components.empty() ? mostRuns + 1 : 1;
  for (const Component &component : components) {
    const Bounds &ends = *bounds[component.operand];
    int64_t count = 1;
    for (int64_t i = 0; i < ends.low.numElements(); ++i)
      if (component.has(i))
        count = std::max(count, 1 + start(ends.high, i, component) - start(ends.low, i, component));
    counts.push_back(count);
    numRuns = std::min(numRuns * std::min(count, mostRuns + 1), mostRuns + 1);
  }
  if (numRuns > mostRuns)
    return std::nullopt;
  std::vector<std::vector<Bounded>> runs;
  for (int64_t run = 0; run < numRuns; ++run) {
    std::vector<Literal> made;
    for (const Bounded &index : indices)
      made.push_back(index.array());
    int64_t rest = run;
    for (auto [component, count] : llvm::zip_equal(components, counts)) {
      const Bounds &ends = *bounds[component.operand];
      for (int64_t i = 0; i < ends.low.numElements(); ++i)
        if (component.has(i))
          made[component.operand].setInt(
              i, std::min(start(ends.low, i, component) + rest % count, start(ends.high, i, component)));
      rest /= count;
    }
    std::vector<Bounded> &operands = runs.emplace_back();
    for (Literal &literal : made)
      operands.emplace_back(Value(std::move(literal)));
  }
  return runs;
}

} // namespace hloc::interp
