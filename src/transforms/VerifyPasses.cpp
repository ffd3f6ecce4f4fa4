#include "hloc/transforms/VerifyPasses.h"

#include "hloc/interp/Bounds.h"
#include "hloc/interp/Interpreter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

struct Difference {
  llvm::SmallVector<int64_t, 2> path;
  Shape shape; ///< of the array it is in
  int64_t element = 0;
  std::string before, after;
};

std::string elementText(const Literal &array, int64_t element) {
  ElementType type = array.shape().elementType();
  if (isInteger(type) || isPred(type))
    return std::to_string(array.getInt(element));
  std::string text;
  llvm::raw_string_ostream os(text);
  std::complex<double> value = isComplex(type) ? array.getComplex(element) : array.getDouble(element);
  if (isComplex(type))
    os << llvm::format("(%.17g, %.17g)", value.real(), value.imag());
  else
    os << llvm::format("%.17g", value.real());
  return text;
}

const Literal &leafOf(const Literal &value, llvm::ArrayRef<int64_t> path) {
  const Literal *leaf = &value;
  for (int64_t index : path)
    leaf = &leaf->element(static_cast<unsigned>(index));
  return *leaf;
}

std::optional<Difference> findDifference(llvm::ArrayRef<AdmissibleArray> leaves, const Literal &actual) {
  for (const AdmissibleArray &leaf : leaves) {
    const Literal &array = leafOf(actual, leaf.path);
    for (int64_t i = 0; i < leaf.value.numElements(); ++i)
      if (!leaf.admits(i, array, i))
        return Difference{leaf.path, leaf.value.shape(), i, elementText(leaf.value, i), elementText(array, i)};
  }
  return std::nullopt;
}

/// The arrays of a value, each of whose elements has one admissible value.
std::vector<AdmissibleArray> exactly(const Literal &value) {
  std::vector<AdmissibleArray> leaves;
  for (const Shape::Leaf &leaf : value.shape().leaves())
    if (leaf.shape.isArray())
      leaves.push_back({leaf.index, leafOf(value, leaf.index), {}, {}});
  return leaves;
}

/// `{1} at [2,3]`
std::string placeOf(const Difference &difference) {
  llvm::SmallVector<int64_t> index(difference.shape.rank());
  int64_t rest = difference.element;
  for (size_t i = index.size(); i-- > 0; rest /= difference.shape.dim(i))
    index[i] = rest % difference.shape.dim(i);
  auto list = [](llvm::ArrayRef<int64_t> values) {
    return llvm::join(llvm::map_range(values, [](int64_t value) { return std::to_string(value); }), ",");
  };
  std::string place = difference.path.empty() ? "" : "{" + list(difference.path) + "} ";
  return place + "at [" + list(index) + "]";
}

class PassVerifier {
public:
  PassVerifier(const HloModule &source, llvm::ArrayRef<PassInput> inputs, DiagnosticEngine &diagnostics)
      : source(source), inputs(inputs), diagnostics(diagnostics) {}

  bool interpretSource() {
    for (const PassInput &input : inputs) {
      llvm::FailureOr<Literal> result = interpret(source, input.arguments, diagnostics);
      if (failed(result))
        return false;
      expected.push_back(std::move(*result));
    }
    return true;
  }

  /// Is all as it was?
  bool check(const HloPass &pass, const HloModule &module) {
    for (auto [input, before] : llvm::zip_equal(inputs, expected)) {
      llvm::FailureOr<Literal> after = interpret(module, input.arguments, diagnostics);
      if (failed(after)) {
        report(pass, "makes a module that the interpreter refuses");
        return false;
      }
      std::optional<Difference> found = findDifference(exactly(before), *after);
      if (found && pass.rounds && isAdmissible(input, *after))
        found.reset();
      if (found) {
        report(pass, "changes the result " + placeOf(*found) + " from " + found->before + " to " + found->after +
                         " in the regime `" + input.name + "`");
        return false;
      }
      before = std::move(*after);
    }
    return true;
  }

private:
  void report(const HloPass &pass, const std::string &what) {
    diagnostics.report(DiagnosticKind::ResultMismatch, "pass `" + pass.name.str() + "` " + what);
  }

  bool isAdmissible(const PassInput &input, const Literal &after) {
    DiagnosticEngine unheard;
    llvm::FailureOr<BoundedResult> bounds = interpretBounds(source, input.arguments, Backend::Hloc, unheard);
    return succeeded(bounds) && !findDifference(bounds->leaves, after);
  }

  const HloModule &source;
  llvm::ArrayRef<PassInput> inputs;
  DiagnosticEngine &diagnostics;
  std::vector<Literal> expected; ///< by input
};

} // namespace

bool verifyEachPass(const HloModule &module, llvm::ArrayRef<HloPass> passes, llvm::ArrayRef<PassInput> inputs,
                    HloPassContext &context) {
  PassVerifier verifier(module, inputs, context.diagnostics);
  if (!verifier.interpretSource())
    return false;
  std::unique_ptr<HloModule> changing = cloneModule(module);
  bool good = true, partsChecked = false;
  auto outer = std::move(context.afterPass);
  context.afterPass = [&](const HloPass &pass, PassResult result, auto, auto) {
    // What the parts of a pass have made is what the pass has made.
    bool isNews = result == PassResult::Changed && !(context.nesting == 0 && partsChecked);
    partsChecked = context.nesting > 0;
    if (good && isNews)
      good = verifier.check(pass, *changing);
  };
  PassResult result = runPasses(*changing, passes, context);
  context.afterPass = std::move(outer);
  return good && result != PassResult::Failed;
}

} // namespace hloc
