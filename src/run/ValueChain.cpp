// A value is an element of an array of an instruction; it is followed to the elements that it is made of, those next to
// the wrong one first. Fusions and calls are looked into: each is a frame, whose computation is interpreted with all
// its instructions as results.

#include "ValueChain.h"

#include "Execute.h"

#include "hloc/hlo/HloEditor.h"
#include "hloc/interp/Interpreter.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>

namespace hloc {
namespace {

using Index = llvm::SmallVector<int64_t, 6>;
constexpr size_t maxValues = 40, maxTerms = 3;
constexpr int64_t maxBytes = int64_t(256) << 20;

Index indexOf(int64_t element, llvm::ArrayRef<int64_t> dims) {
  Index index(dims.size());
  for (size_t i = dims.size(); i-- > 0; element /= dims[i])
    index[i] = element % dims[i];
  return index;
}

int64_t elementAt(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> dims) {
  int64_t element = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    element = element * dims[i] + index[i];
  return element;
}

/// The element of `to` that lies where `element` of `from` does.
int64_t elementAtSamePlace(int64_t element, const Shape &from, const Shape &to) {
  int64_t place = 0, size = 1;
  const Index index = indexOf(element, from.dims());
  for (int64_t dim : from.minorToMajor()) {
    place += index[size_t(dim)] * size;
    size *= from.dim(unsigned(dim));
  }
  Index there(to.rank());
  for (int64_t dim : to.minorToMajor()) {
    there[size_t(dim)] = place % to.dim(unsigned(dim));
    place /= to.dim(unsigned(dim));
  }
  return elementAt(there, to.dims());
}

bool hasArraysOnly(const Shape &shape) {
  return llvm::all_of(shape.leaves(), [](const Shape::Leaf &leaf) { return leaf.shape.isArray(); });
}

/// The computation that an instruction stands for; null if it is an operation.
const HloComputation *insideOf(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Fusion ? instr.computation(AttributeKey::Calls)
         : instr.opcode() == Opcode::Call ? instr.computation(AttributeKey::ToApply)
                                          : nullptr;
}

int64_t bytesOfValues(const HloComputation &computation) {
  int64_t bytes = 0;
  for (const HloInstruction *instr : computation.instructions()) {
    for (const Shape::Leaf &leaf : instr->shape().leaves())
      if (leaf.shape.isArray())
        bytes += leaf.shape.numElements() * int64_t(hostBytes(leaf.shape.elementType()));
    if (const HloComputation *inside = insideOf(*instr))
      bytes += bytesOfValues(*inside);
    if (bytes > maxBytes)
      break;
  }
  return bytes;
}

/// One computation where it is called, and all its values.
struct Frame {
  Frame *caller = nullptr;
  const HloInstruction *call = nullptr; ///< of the caller
  std::unique_ptr<HloModule> module;    ///< has the computation, with all instructions as results
  const HloInstruction *root = nullptr;
  Literal all;
  std::map<const HloInstruction *, size_t> places;

  const Literal *find(const HloInstruction *instr) const {
    auto found = places.find(instr);
    return found == places.end() ? nullptr : &all.element(unsigned(found->second));
  }
};

/// An element of an array of what an instruction gives.
struct Element {
  Frame *frame;
  const HloInstruction *instr;
  size_t leaf;
  int64_t element;
  auto operator<=>(const Element &) const = default;

  Shape shape() const { return instr->shape().leaves()[leaf].shape; }
  Index index() const { return indexOf(element, shape().dims()); }
};

/// What is put together to one value, the few that matter most in front.
struct Terms {
  enum class Order { Magnitude, Largest, Smallest } order = Order::Magnitude;
  struct Term {
    double rank;
    Index left, right;
  };
  int64_t count = 0;
  std::vector<Term> kept;

  void add(double value, const Index &left, const Index &right = {}) {
    ++count;
    const double rank = std::isnan(value)          ? HUGE_VAL
                        : order == Order::Largest  ? value
                        : order == Order::Smallest ? -value
                                                   : std::abs(value);
    if (kept.size() == maxTerms && rank <= kept.back().rank)
      return;
    kept.insert(llvm::find_if(kept, [&](const Term &term) { return term.rank < rank; }), {rank, left, right});
    kept.resize(std::min(kept.size(), maxTerms));
  }
};

double magnitudeAt(const Literal &array, int64_t element) {
  return isComplex(array.shape().elementType()) ? std::abs(array.getComplex(element)) : array.getDouble(element);
}

std::string indexText(llvm::ArrayRef<int64_t> index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

class ChainFinder {
public:
  ChainFinder(const InterpreterOptions &options, ValueChain &chain) : options(options), chain(chain) {}

  void find(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Mismatch &wrong);

private:
  struct Found {
    ChainValue value;
    std::vector<size_t> operands;
  };

  Frame *enter(const HloModule &module, llvm::StringRef computation, llvm::ArrayRef<Literal> arguments);
  std::optional<Element> resolve(Element at);
  const Literal *arrayOf(const Element &at) const;
  std::optional<size_t> numberOf(Element at);
  void follow(size_t number);
  void made(size_t number, unsigned operand, int64_t element);
  void made(size_t number, unsigned operand, llvm::ArrayRef<int64_t> index) {
    made(number, operand, elementAt(index, elements[number].instr->operand(operand)->shape().dims()));
  }
  bool followMoved(size_t number, const Index &index);
  bool followPieces(size_t number, const Index &index);
  bool followSlices(size_t number, const Index &index);
  bool followSums(size_t number, const Index &index);
  void reduce(size_t number, const Index &index);
  void dot(size_t number, const Index &index);
  Element operandOf(size_t number, unsigned operand, int64_t element) const {
    const Element &at = elements[number];
    return {at.frame, at.instr->operand(operand), 0, element};
  }
  std::string termText(size_t number, unsigned operand, const Index &index);
  std::optional<int64_t> scalar(size_t number, unsigned operand) const;
  void write(size_t number, std::map<size_t, unsigned> &written);

  const InterpreterOptions &options;
  ValueChain &chain;
  std::vector<std::unique_ptr<Frame>> frames;
  std::map<std::pair<Frame *, const HloInstruction *>, Frame *> frameOf;
  std::vector<Element> elements;
  std::vector<Found> found; ///< of each
  std::map<Element, size_t> numbers;
};

/// Null if it cannot be evaluated.
Frame *ChainFinder::enter(const HloModule &module, llvm::StringRef computation, llvm::ArrayRef<Literal> arguments) {
  auto frame = std::make_unique<Frame>();
  frame->module = cloneModule(module);
  HloComputation &copy = *frame->module->findComputation(computation);
  frame->root = copy.root();
  llvm::SmallVector<HloInstruction *> kept;
  llvm::SmallVector<Shape> shapes;
  for (HloInstruction *instr : copy.instructions())
    if (hasArraysOnly(instr->shape())) {
      frame->places[instr] = kept.size();
      kept.push_back(instr);
      shapes.push_back(instr->shape());
    }
  {
    HloEditor editor(copy);
    InstructionSpec spec;
    spec.opcode = Opcode::Tuple;
    spec.shape = Shape::tuple(shapes);
    spec.operands = kept;
    editor.setRoot(editor.insert(spec, nullptr));
  }
  DiagnosticEngine unheard;
  llvm::FailureOr<Literal> all = interpret(copy, arguments, unheard, options);
  if (failed(all))
    return nullptr;
  frame->all = std::move(*all);
  return frames.emplace_back(std::move(frame)).get();
}

/// Tuples hold, fusions and calls hand on what is something else's. None if a computation cannot be evaluated.
std::optional<Element> ChainFinder::resolve(Element at) {
  while (true) {
    const Opcode opcode = at.instr->opcode();
    if (opcode == Opcode::Tuple) {
      for (const HloInstruction *operand : at.instr->operands()) {
        const size_t here = operand->shape().leaves().size();
        if (at.leaf < here) {
          at.instr = operand;
          break;
        }
        at.leaf -= here;
      }
    } else if (opcode == Opcode::GetTupleElement) {
      const HloInstruction *tuple = at.instr->operand(0);
      for (int64_t i = 0; i < at.instr->intOr(AttributeKey::Index, 0); ++i)
        at.leaf += tuple->shape().element(unsigned(i)).leaves().size();
      at.instr = tuple;
    } else if (opcode == Opcode::Parameter && at.frame->caller) {
      at.instr = at.frame->call->operand(unsigned(at.instr->parameterNumber()));
      at.frame = at.frame->caller;
    } else if (opcode == Opcode::OptimizationBarrier || opcode == Opcode::Domain) {
      at.instr = at.instr->operand(0);
    } else if (const HloComputation *inside = insideOf(*at.instr)) {
      Frame *&frame = frameOf[{at.frame, at.instr}];
      if (!frame) {
        std::vector<Literal> arguments;
        for (const HloInstruction *operand : at.instr->operands()) {
          const Literal *value = at.frame->find(operand);
          if (!value)
            return std::nullopt;
          arguments.push_back(*value);
        }
        frame = enter(*at.frame->module, inside->name(), arguments);
        if (!frame)
          return std::nullopt;
        frame->caller = at.frame;
        frame->call = at.instr;
      }
      at = {frame, frame->root, at.leaf, at.element};
    } else {
      return at;
    }
  }
}

/// Null if it is not known.
const Literal *ChainFinder::arrayOf(const Element &at) const {
  const Literal *value = at.frame->find(at.instr);
  return value ? leavesOf(*value, at.instr->shape())[at.leaf] : nullptr;
}

/// None if there is no room for it, or it is not known.
std::optional<size_t> ChainFinder::numberOf(Element at) {
  std::optional<Element> resolved = resolve(at);
  if (!resolved)
    return std::nullopt;
  if (auto known = numbers.find(*resolved); known != numbers.end())
    return known->second;
  const Literal *array = arrayOf(*resolved);
  if (!array || elements.size() == maxValues)
    return std::nullopt;
  const HloInstruction &instr = *resolved->instr;
  ChainValue value;
  value.name = instr.name().str();
  value.opcode = hloc::text(instr.opcode()).str();
  value.type = resolved->shape().toString(/*withLayout=*/false);
  const Index index = resolved->index();
  value.index.assign(index.begin(), index.end());
  value.value = array->isElided() ? "?" : elementText(*array, resolved->element);
  const std::shared_ptr<const SourceFile> &source = resolved->frame->module->source();
  if (source && instr.range().isValid())
    value.line = source->lineColumn(instr.range().begin).line;
  numbers[*resolved] = elements.size();
  elements.push_back(*resolved);
  found.push_back({std::move(value), {}});
  return elements.size() - 1;
}

void ChainFinder::made(size_t number, unsigned operand, int64_t element) {
  const HloInstruction *value = elements[number].instr->operand(operand);
  if (!value->shape().isArray())
    return;
  if (std::optional<size_t> of = numberOf({elements[number].frame, value, 0, element}))
    found[number].operands.push_back(*of);
  else
    found[number].value.end = elements.size() == maxValues ? fmt::format("more than {} values led here", maxValues)
                                                           : "what it is made of cannot be evaluated";
}

/// A scalar integer operand; none if it is none.
std::optional<int64_t> ChainFinder::scalar(size_t number, unsigned operand) const {
  const Element at = operandOf(number, operand, 0);
  const Literal *value = at.instr->shape().isScalar() ? at.frame->find(at.instr) : nullptr;
  return value ? std::optional(value->getInt(0)) : std::nullopt;
}

bool ChainFinder::followMoved(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  const Shape &from = instr.operand(0)->shape();
  const llvm::ArrayRef<int64_t> dims = instr.ints(AttributeKey::Dimensions);
  Index there(from.isArray() ? from.rank() : 0);
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::Broadcast) {
    for (size_t i = 0; i < dims.size(); ++i)
      there[i] = index[size_t(dims[i])];
  } else if (opcode == Opcode::Transpose) {
    for (size_t i = 0; i < dims.size(); ++i)
      there[size_t(dims[i])] = index[i];
  } else if (opcode == Opcode::Reverse) {
    there = index;
    for (int64_t dim : dims)
      there[size_t(dim)] = from.dim(unsigned(dim)) - 1 - index[size_t(dim)];
  } else if (opcode == Opcode::Slice) {
    for (auto [i, range] : llvm::enumerate(instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice)))
      there[i] = range.start + index[i] * range.stride;
  } else if (opcode == Opcode::Reshape) {
    made(number, 0, elements[number].element);
    return true;
  } else if (opcode == Opcode::Bitcast && from.elementType() == instr.shape().elementType()) {
    made(number, 0, elementAtSamePlace(elements[number].element, instr.shape(), from));
    return true;
  } else {
    return false;
  }
  made(number, 0, there);
  return true;
}

bool ChainFinder::followPieces(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  Index there = index;
  if (instr.opcode() == Opcode::Concatenate) {
    const auto dim = unsigned(instr.ints(AttributeKey::Dimensions).front());
    for (unsigned i = 0; i < instr.numOperands(); there[dim] -= instr.operand(i)->shape().dim(dim), ++i)
      if (there[dim] < instr.operand(i)->shape().dim(dim)) {
        made(number, i, there);
        return true;
      }
    return false;
  }
  if (instr.opcode() != Opcode::Pad)
    return false;
  const Shape &from = instr.operand(0)->shape();
  bool isInside = true;
  for (auto [i, dim] : llvm::enumerate(instr.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding))) {
    const int64_t past = index[i] - dim.low, step = dim.interior + 1;
    isInside &= past >= 0 && past % step == 0 && past / step < from.dim(unsigned(i));
    there[i] = past / step;
  }
  if (isInside)
    made(number, 0, there);
  else
    made(number, 1, int64_t(0));
  return true;
}

/// Where a slice begins is part of what led to its elements.
bool ChainFinder::followSlices(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  const bool isUpdate = instr.opcode() == Opcode::DynamicUpdateSlice;
  if (!isUpdate && instr.opcode() != Opcode::DynamicSlice)
    return false;
  const unsigned first = isUpdate ? 2 : 1;
  const Shape &whole = instr.operand(0)->shape(), &slice = isUpdate ? instr.operand(1)->shape() : instr.shape();
  Index there = index;
  bool isInside = true;
  for (unsigned i = 0; i < whole.rank(); ++i) {
    const std::optional<int64_t> given = first + i < instr.numOperands() ? scalar(number, first + i) : std::nullopt;
    if (!given)
      return false;
    const int64_t start = std::clamp<int64_t>(*given, 0, whole.dim(i) - slice.dim(i));
    there[i] += isUpdate ? -start : start;
    isInside &= there[i] >= 0 && there[i] < slice.dim(i);
  }
  if (!isUpdate)
    made(number, 0, there);
  else if (isInside)
    made(number, 1, there);
  else
    made(number, 0, index);
  for (unsigned i = 0; i < whole.rank(); ++i)
    made(number, first + i, int64_t(0));
  return true;
}

/// `x[3, 5] 2.5`
std::string ChainFinder::termText(size_t number, unsigned operand, const Index &index) {
  const Element at =
      operandOf(number, operand, elementAt(index, elements[number].instr->operand(operand)->shape().dims()));
  const std::optional<Element> named = resolve(at);
  return fmt::format("{}{} {}", (named ? *named : at).instr->name().str(), indexText(index),
                     elementText(*arrayOf(at), at.element));
}

/// One of several results is made of the input that has its place.
void ChainFinder::reduce(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  const llvm::ArrayRef<int64_t> dims = instr.ints(AttributeKey::Dimensions);
  const auto input = unsigned(elements[number].leaf);
  const Shape &from = instr.operand(input)->shape();
  const Literal &array = *arrayOf(operandOf(number, input, 0));
  Index there(from.rank()), sizes;
  for (size_t i = 0, next = 0; i < from.rank(); ++i)
    if (!llvm::is_contained(dims, int64_t(i)))
      there[i] = index[next++];
  int64_t count = 1;
  for (int64_t dim : dims) {
    sizes.push_back(from.dim(unsigned(dim)));
    count *= sizes.back();
  }
  Terms terms;
  const Opcode by = instr.computation(AttributeKey::ToApply)->root()->opcode();
  terms.order = by == Opcode::Maximum   ? Terms::Order::Largest
                : by == Opcode::Minimum ? Terms::Order::Smallest
                                        : Terms::Order::Magnitude;
  for (int64_t term = 0; term < count; ++term) {
    const Index inner = indexOf(term, sizes);
    for (size_t i = 0; i < dims.size(); ++i)
      there[size_t(dims[i])] = inner[i];
    terms.add(magnitudeAt(array, elementAt(there, from.dims())), there);
  }
  found[number].value.numTerms = terms.count;
  for (const Terms::Term &term : terms.kept)
    found[number].value.terms.push_back(termText(number, input, term.left));
  if (!terms.kept.empty())
    made(number, input, terms.kept.front().left);
  made(number, instr.numOperands() / 2 + input, int64_t(0));
}

void ChainFinder::dot(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  Index there[2], sizes;
  const Literal *arrays[2];
  llvm::ArrayRef<int64_t> contracted[2] = {instr.ints(AttributeKey::LhsContractingDims),
                                           instr.ints(AttributeKey::RhsContractingDims)};
  const llvm::ArrayRef<int64_t> batch[2] = {instr.ints(AttributeKey::LhsBatchDims),
                                            instr.ints(AttributeKey::RhsBatchDims)};
  size_t next = batch[0].size();
  for (unsigned side : {0, 1}) {
    const Shape &from = instr.operand(side)->shape();
    arrays[side] = arrayOf(operandOf(number, side, 0));
    there[side].resize(from.rank());
    for (size_t i = 0; i < batch[side].size(); ++i)
      there[side][size_t(batch[side][i])] = index[i];
    for (size_t i = 0; i < from.rank(); ++i)
      if (!llvm::is_contained(batch[side], int64_t(i)) && !llvm::is_contained(contracted[side], int64_t(i)))
        there[side][i] = index[next++];
  }
  int64_t count = 1;
  for (int64_t dim : contracted[0]) {
    sizes.push_back(instr.operand(0)->shape().dim(unsigned(dim)));
    count *= sizes.back();
  }
  Terms terms;
  for (int64_t term = 0; term < count; ++term) {
    const Index inner = indexOf(term, sizes);
    double product = 1;
    for (unsigned side : {0, 1}) {
      for (size_t i = 0; i < inner.size(); ++i)
        there[side][size_t(contracted[side][i])] = inner[i];
      product *= magnitudeAt(*arrays[side], elementAt(there[side], arrays[side]->shape().dims()));
    }
    terms.add(product, there[0], there[1]);
  }
  found[number].value.numTerms = terms.count;
  for (const Terms::Term &term : terms.kept)
    found[number].value.terms.push_back(termText(number, 0, term.left) + " times " + termText(number, 1, term.right));
  if (!terms.kept.empty()) {
    made(number, 0, terms.kept.front().left);
    made(number, 1, terms.kept.front().right);
  }
}

bool ChainFinder::followSums(size_t number, const Index &index) {
  const HloInstruction &instr = *elements[number].instr;
  const bool isDot = instr.opcode() == Opcode::Dot;
  if (!isDot && instr.opcode() != Opcode::Reduce)
    return false;
  if (llvm::any_of(instr.operands(), [&](const HloInstruction *operand) {
        const Literal *value = elements[number].frame->find(operand);
        return !value || value->isElided();
      }))
    return false;
  isDot ? dot(number, index) : reduce(number, index);
  return true;
}

void ChainFinder::follow(size_t number) {
  const Element at = elements[number];
  const HloInstruction &instr = *at.instr;
  if (!instr.numOperands())
    return;
  const Index index = at.index();
  if (instr.opcode() == Opcode::Select) {
    const HloInstruction *chooser = instr.operand(0);
    const int64_t place = chooser->shape().isScalar() ? 0 : at.element;
    made(number, 0, place);
    if (const Literal *value = at.frame->find(chooser))
      made(number, value->getInt(place) ? 1 : 2, at.element);
    return;
  }
  if (followMoved(number, index) || followPieces(number, index) || followSlices(number, index) ||
      followSums(number, index))
    return;
  if (!hasTrait(instr.opcode(), OpcodeTrait::InPlace) ||
      llvm::any_of(instr.operands(), [&](const HloInstruction *operand) {
        return operand->shape().isArray() && !operand->shape().isScalar() && !operand->shape().sameDims(at.shape());
      })) {
    found[number].value.end = fmt::format("what a {} is made of is not followed", hloc::text(instr.opcode()).str());
    return;
  }
  for (unsigned i = 0; i < instr.numOperands(); ++i)
    made(number, i, instr.operand(i)->shape().isArray() && instr.operand(i)->shape().isScalar() ? 0 : at.element);
}

/// Operands first.
void ChainFinder::write(size_t number, std::map<size_t, unsigned> &written) {
  if (written.count(number))
    return;
  for (size_t operand : found[number].operands)
    write(operand, written);
  for (size_t operand : found[number].operands)
    found[number].value.operands.push_back(written.at(operand));
  written[number] = unsigned(chain.values.size());
  chain.values.push_back(std::move(found[number].value));
}

void ChainFinder::find(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Mismatch &wrong) {
  if (bytesOfValues(*module.entry()) > maxBytes) {
    chain.missing = fmt::format("all values together are larger than {} MiB", maxBytes >> 20);
    return;
  }
  Frame *entry = enter(module, module.entry()->name(), arguments);
  size_t leaf = 0;
  const auto leaves = module.entry()->root()->shape().leaves();
  while (leaf < leaves.size() && leaves[leaf].index != wrong.leaf)
    ++leaf;
  if (!entry || leaf == leaves.size() || leaves[leaf].shape.rank() != wrong.index.size() ||
      !numberOf({entry, entry->root, leaf, elementAt(wrong.index, leaves[leaf].shape.dims())})) {
    chain.missing = "its values cannot be evaluated one by one";
    return;
  }
  for (size_t i = 0; i < elements.size(); ++i)
    follow(i);
  std::map<size_t, unsigned> written;
  write(0, written);
}

} // namespace

ValueChain chainOf(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Mismatch &wrong,
                   const InterpreterOptions &options) {
  ValueChain chain;
  chain.leaf.assign(wrong.leaf.begin(), wrong.leaf.end());
  chain.index.assign(wrong.index.begin(), wrong.index.end());
  chain.expected = wrong.expected;
  chain.actual = wrong.actual;
  chain.admissible = wrong.admissible;
  ChainFinder(options, chain).find(module, arguments, wrong);
  return chain;
}

} // namespace hloc
