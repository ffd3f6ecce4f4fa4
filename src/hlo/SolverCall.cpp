#include "hloc/hlo/SolverCall.h"

#include "CallReader.h"
#include "SolverConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>

namespace hloc {

namespace {

struct Target {
  SolverRoutine routine;
  std::optional<ElementType> type; ///< the one that the name says
  bool isLapack = false;           ///< configured by letters
  bool isOpaque = false;           ///< Eigh: configured by a list of numbers
  bool rightIsPlain = false;
};

std::optional<SolverRoutine> routineOf(llvm::StringRef name) {
  using enum SolverRoutine;
  return llvm::StringSwitch<std::optional<SolverRoutine>>(name)
      .Case("getrf", Lu)
      .Case("geqrf", Qr)
      .Cases({"orgqr", "ungqr"}, ReflectorProduct)
      .Cases({"ormqr", "unmqr"}, ReflectorMultiply)
      .Case("potrf", Cholesky)
      .Case("trsm", TriangularSolve)
      .Cases({"syevd", "heevd"}, Hermitian)
      .Cases({"gesdd", "gesvd", "gesvdj", "gesvdp"}, SingularValues)
      .Case("geev", General)
      .Case("syrk", SymmetricProduct)
      .Case("gtsv", TridiagonalSolve)
      .Default(std::nullopt);
}

std::optional<Target> lapackTarget(llvm::StringRef name) {
  if (name.empty())
    return std::nullopt;
  std::optional<ElementType> type = llvm::StringSwitch<std::optional<ElementType>>(name.take_front())
                                        .Case("s", ElementType::F32)
                                        .Case("d", ElementType::F64)
                                        .Case("c", ElementType::C64)
                                        .Case("z", ElementType::C128)
                                        .Default(std::nullopt);
  std::optional<SolverRoutine> routine = routineOf(name.drop_front());
  if (!type || !routine || *routine == SolverRoutine::SymmetricProduct || name.ends_with("gesvdj") ||
      name.ends_with("gesvdp"))
    return std::nullopt;
  return Target{*routine, type, /*isLapack=*/true};
}

std::optional<Target> targetOf(llvm::StringRef target) {
  llvm::StringRef name = target;
  if (name.consume_back("_ffi")) {
    if (name.consume_front("lapack_"))
      return lapackTarget(name);
    if ((name.consume_front("cublas_") || name.consume_front("hipblas_")) && !name.consume_back("_batched"))
      return std::nullopt;
    if (name == "cusparse_gtsv2" || name == "hipsparse_gtsv2")
      return Target{SolverRoutine::TridiagonalSolve, std::nullopt};
    (void)(name.consume_front("cusolver_") || name.consume_front("hipsolver_"));
    const bool isOfLapackAlone = name == "trsm" || name == "geev" || name == "gtsv";
    std::optional<SolverRoutine> routine =
        isOfLapackAlone || name.size() + 4 == target.size() ? std::nullopt : routineOf(name);
    if (!routine)
      return std::nullopt;
    Target found{*routine, std::nullopt};
    found.rightIsPlain = name == "gesvdj" || name == "gesvdp";
    return found;
  }
  using enum SolverRoutine;
  std::optional<SolverRoutine> routine =
      llvm::StringSwitch<std::optional<SolverRoutine>>(target)
          .Cases({"cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation"}, PivotsToPermutation)
          .Cases({"cuhybrid_eig_real", "cuhybrid_eig_comp"}, General)
          .Case("__cublas$triangularSolve", TriangularSolve)
          .Case("Qr", Qr)
          .Case("ProductOfElementaryHouseholderReflectors", ReflectorProduct)
          .Case("LuDecomposition", LuPermutation)
          .Case("Eigh", Hermitian)
          .Default(std::nullopt);
  if (!routine)
    return std::nullopt;
  Target found{*routine, std::nullopt};
  found.isOpaque = target == "Eigh";
  return found;
}

ElementType realOf(ElementType type) { return isComplex(type) ? componentType(type) : type; }

/// Does the array lie in memory in the order of its dimensions, but for the last two if `byColumns`? Dimensions of one
/// element lie anywhere.
bool liesInOrder(const Shape &shape, bool byColumns) {
  llvm::SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, shape.rank()));
  if (byColumns)
    std::swap(order[order.size() - 2], order.back());
  auto isLong = [&](int64_t dim) { return shape.dim(unsigned(dim)) > 1; };
  llvm::SmallVector<int64_t> wanted, given;
  llvm::copy_if(llvm::reverse(order), std::back_inserter(wanted), isLong);
  llvm::copy_if(shape.minorToMajor(), std::back_inserter(given), isLong);
  return wanted == given || shape.numElements() == 0;
}

/// Fits a call to its target, up to the first thing that does not.
class Reader : CallReader {
public:
  Reader(const HloInstruction &call, const Target &target, std::string &why)
      : CallReader(call, why), target(target), config(readSolverConfig(call.string(AttributeKey::BackendConfig))) {}

  std::optional<SolverCall> read() {
    const bool isPivots = target.routine == SolverRoutine::PivotsToPermutation;
    const bool isDiagonals = target.routine == SolverRoutine::TridiagonalSolve;
    const unsigned ownRank = isPivots || isDiagonals ? 1 : 2;
    if (!call.numOperands() || !call.operand(0)->shape().isArray() || call.operand(0)->shape().rank() < ownRank)
      return failed(isPivots ? "it has no pivots" : isDiagonals ? "it has no diagonals" : "it has no matrix");
    const Shape &first = call.operand(0)->shape();
    type = first.elementType();
    if (isPivots ? type != ElementType::S32 : !isSolved(type))
      return failed("it is given " + first.toString(false));
    if (target.type && *target.type != type)
      return failed("it is given " + first.toString(false) + ", and its name says " + text(*target.type).str());
    if (first.hasDynamicDims() || call.hasSideEffect())
      return failed(call.hasSideEffect() ? "it has a side effect" : "a size is not known");
    made.routine = target.routine;
    made.batch.assign(first.dims().begin(), first.dims().end() - ownRank);
    made.columns = first.dims().back();
    made.rows = isPivots ? 1 : isDiagonals ? made.columns : first.dims().drop_back().back();
    // Loops that the call becomes count rows and columns by 32 bits.
    if (std::max(made.rows, made.columns) > std::numeric_limits<int32_t>::max())
      return failed("it is given " + first.toString(false));
    readConfig();
    if (why.empty())
      fitShapes();
    if (why.empty())
      fitLayouts();
    return why.empty() ? std::optional(made) : std::nullopt;
  }

private:
  static bool isSolved(ElementType type) {
    using enum ElementType;
    return llvm::is_contained({F32, F64, C64, C128}, type);
  }

  /// One of the letters; the first after an error.
  char letter(llvm::StringRef key, llvm::StringRef letters) {
    auto found = config.find(key.str());
    unsigned code = 0;
    if (found != config.end() && !llvm::StringRef(found->second).getAsInteger(10, code) && code < 128 &&
        letters.contains(char(code)))
      return char(code);
    failed("its `backend_config` has no `" + key.str() + "` that is one of the letters " + letters.str());
    return letters.front();
  }
  bool flag(llvm::StringRef key, std::optional<bool> otherwise = std::nullopt) {
    auto found = config.find(key.str());
    if (found == config.end() && otherwise)
      return *otherwise;
    if (found != config.end() && (found->second == "true" || found->second == "false"))
      return found->second == "true";
    failed("its `backend_config` has no `" + key.str() + "` that is true or false");
    return false;
  }

  void readConfig() {
    switch (target.routine) {
    case SolverRoutine::Cholesky:
      made.lower = target.isLapack ? letter("uplo", "LU") == 'L' : flag("lower");
      break;
    case SolverRoutine::TriangularSolve:
      readTriangularSolve();
      break;
    case SolverRoutine::ReflectorMultiply:
      made.left = flag("left");
      made.transpose = flag("transpose") ? Transpose::Adjoint : Transpose::None;
      break;
    case SolverRoutine::Hermitian:
      if (target.isOpaque) { // lower, sort, sweeps, tolerance
        llvm::StringRef text = call.string(AttributeKey::BackendConfig).trim("\" ");
        made.lower = text.starts_with("1,");
        if (!made.lower && !text.starts_with("0,"))
          failed("its `backend_config` does not begin with the triangle, 1 or 0");
      } else {
        made.lower = target.isLapack ? letter("uplo", "LU") == 'L' : flag("lower");
        made.wantsVectors = !target.isLapack || letter("mode", "VN") == 'V';
      }
      break;
    case SolverRoutine::SingularValues:
      made.rightIsPlain = target.rightIsPlain;
      made.wantsVectors = target.isLapack ? letter("mode", "ASN") != 'N' : flag("compute_uv");
      made.isTurned = !target.isLapack && flag("transposed", false);
      break;
    case SolverRoutine::General:
      made.wantsVectors = target.isLapack ? letter("compute_right", "VN") == 'V' : flag("right");
      made.wantsLeft = target.isLapack ? letter("compute_left", "VN") == 'V' : flag("left");
      break;
    case SolverRoutine::SymmetricProduct:
      made.transpose = flag("transpose") ? Transpose::Transpose : Transpose::None;
      break;
    default:
      break;
    }
  }

  void readTriangularSolve() {
    if (target.isLapack) {
      made.left = letter("side", "LR") == 'L';
      made.lower = letter("uplo", "LU") == 'L';
      made.unitDiagonal = letter("diag", "NU") == 'U';
      const char transposed = letter("trans_x", "NTC");
      made.transpose = transposed == 'N'   ? Transpose::None
                       : transposed == 'T' ? Transpose::Transpose
                                           : Transpose::Adjoint;
      return;
    }
    made.left = flag("left_side", false);
    made.lower = flag("lower", false);
    made.unitDiagonal = flag("unit_diagonal", false);
    auto found = config.find("transpose_a");
    const std::string transposed = found == config.end() ? "" : found->second;
    if (transposed != "NO_TRANSPOSE" && transposed != "TRANSPOSE" && transposed != "ADJOINT")
      failed("its `backend_config` has no `transpose_a` that is NO_TRANSPOSE, TRANSPOSE or ADJOINT");
    made.transpose = transposed == "TRANSPOSE" ? Transpose::Transpose
                     : transposed == "ADJOINT" ? Transpose::Adjoint
                                               : Transpose::None;
  }

  // --- shapes

  Shape array(ElementType of, llvm::ArrayRef<int64_t> own) const {
    llvm::SmallVector<int64_t> dims(made.batch.begin(), made.batch.end());
    dims.append(own.begin(), own.end());
    return Shape::array(of, dims);
  }
  Shape array(llvm::ArrayRef<int64_t> own) const { return array(type, own); }
  Shape info() const { return array(ElementType::S32, {}); }

  void fitOperands(llvm::ArrayRef<Shape> wanted) {
    if (call.numOperands() != wanted.size()) {
      failed("it has " + std::to_string(call.numOperands()) + " operands, where " + std::to_string(wanted.size()) +
             " are expected");
      return;
    }
    for (auto [i, shape] : llvm::enumerate(wanted))
      fit(call.operand(unsigned(i))->shape(), shape, "operand " + std::to_string(i));
  }
  bool countResults(size_t count) {
    if (call.shape().isTuple() && call.shape().elements().size() == count)
      return true;
    failed("its result is " + call.shape().toString(false) + ", where a tuple of " + std::to_string(count) +
           " is expected");
    return false;
  }
  void fitResults(llvm::ArrayRef<Shape> wanted) {
    if (countResults(wanted.size()))
      for (auto [i, shape] : llvm::enumerate(wanted))
        fit(call.shape().element(unsigned(i)), shape, "result " + std::to_string(i));
  }
  void requireSquare() {
    if (made.rows != made.columns)
      failed("its matrices have " + std::to_string(made.rows) + " rows and " + std::to_string(made.columns) +
             " columns");
  }

  void fitShapes() {
    const int64_t m = made.rows, n = made.columns, least = std::min(m, n);
    const Shape matrix = array({m, n});
    switch (target.routine) {
    case SolverRoutine::Lu:
      fitOperands({matrix});
      return fitResults({matrix, array(ElementType::S32, {least}), info()});
    case SolverRoutine::LuPermutation:
      fitOperands({matrix});
      return fitResults({matrix, array(ElementType::S32, {least}), array(ElementType::S32, {m})});
    case SolverRoutine::Qr:
      fitOperands({matrix});
      return fitResults({matrix, array({least})});
    case SolverRoutine::ReflectorProduct:
    case SolverRoutine::ReflectorMultiply:
      return fitReflectors();
    case SolverRoutine::Cholesky:
      requireSquare();
      fitOperands({matrix});
      return fitResults({matrix, info()});
    case SolverRoutine::TriangularSolve:
      return fitTriangularSolve();
    case SolverRoutine::Hermitian:
      requireSquare();
      fitOperands({matrix});
      return target.isOpaque ? fitResults({matrix, array(realOf(type), {n})})
                             : fitResults({matrix, array(realOf(type), {n}), info()});
    case SolverRoutine::SingularValues:
      return fitSingularValues();
    case SolverRoutine::General: {
      requireSquare();
      fitOperands({matrix});
      const Shape values = array({n}), vectors = array(isComplex(type) ? type : complexOf(type), {n, n});
      return isComplex(type) ? fitResults({values, vectors, vectors, info()})
                             : fitResults({values, values, vectors, vectors, info()});
    }
    case SolverRoutine::PivotsToPermutation:
      fitOperands({call.operand(0)->shape()});
      if (!call.shape().isArray() || call.shape().elementType() != ElementType::S32 || call.shape().rank() == 0 ||
          call.shape().dims().drop_back() != llvm::ArrayRef<int64_t>(made.batch) || call.shape().dims().back() < n)
        failed("its result is " + call.shape().toString(false));
      return;
    case SolverRoutine::SymmetricProduct: {
      if (isComplex(type))
        failed("it is given complex numbers");
      const int64_t size = made.transpose == Transpose::None ? m : n;
      fitOperands({matrix, array({size, size}), Shape::scalar(type), Shape::scalar(type)});
      return fit(call.shape(), array({size, size}), "its result");
    }
    case SolverRoutine::TridiagonalSolve: {
      const Shape right = call.numOperands() == 4 ? call.operand(3)->shape() : Shape();
      const Shape wanted = array({n, right.isArray() && right.rank() > 0 ? right.dims().back() : 1});
      const Shape diagonal = array({n});
      fitOperands({diagonal, diagonal, diagonal, wanted});
      return target.isLapack ? fitResults({diagonal, diagonal, diagonal, wanted, info()})
                             : fit(call.shape(), wanted, "its result");
    }
    }
  }

  static ElementType complexOf(ElementType type) {
    return type == ElementType::F64 ? ElementType::C128 : ElementType::C64;
  }

  void fitReflectors() {
    const int64_t m = made.rows, n = made.columns;
    const bool multiplies = target.routine == SolverRoutine::ReflectorMultiply;
    if (call.numOperands() != (multiplies ? 3 : 2) || !call.operand(1)->shape().isArray() ||
        call.operand(1)->shape().rank() == 0 || (!multiplies && n > m)) {
      failed("its operands are not reflectors and their factors");
      return;
    }
    const int64_t count = call.operand(1)->shape().dims().back();
    if (count > std::min(m, n))
      failed("it has " + std::to_string(count) + " factors for " + std::to_string(std::min(m, n)) + " reflectors");
    if (!multiplies) {
      fitOperands({array({m, n}), array({count})});
      return fit(call.shape(), array({m, n}), "its result");
    }
    const Shape &given = call.operand(2)->shape();
    if (!given.isArray() || given.rank() < 2 || given.dims().drop_back(made.left ? 1 : 0).back() != m) {
      failed("operand 2 is " + given.toString(false) + ", which reflectors of " + std::to_string(m) +
             " elements do not fit");
      return;
    }
    const Shape other = array(given.dims().take_back(2));
    fitOperands({array({m, n}), array({count}), other});
    fit(call.shape(), other, "its result");
  }

  void fitTriangularSolve() {
    requireSquare();
    const int64_t n = made.rows;
    const Shape right = call.numOperands() == 2 ? call.operand(1)->shape() : Shape();
    if (!right.isArray() || right.rank() < 2 || right.dims().drop_back(made.left ? 1 : 0).back() != n) {
      failed("it has no right sides that fit its matrices");
      return;
    }
    const Shape wanted = array(right.dims().take_back(2));
    fitOperands({array({n, n}), wanted});
    const bool hasScratch = call.shape().isTuple() && call.shape().elements().size() == 2;
    fit(hasScratch ? call.shape().element(0) : call.shape(), wanted, "its result");
    if (hasScratch && !call.shape().element(1).isArray())
      failed("its scratch memory is " + call.shape().element(1).toString(false));
  }

  void fitSingularValues() {
    int64_t m = made.rows, n = made.columns;
    fitOperands({array({m, n})});
    if (!countResults(5))
      return;
    fit(call.shape().element(0), array({m, n}), "result 0");
    if (made.isTurned)
      std::swap(m, n);
    const int64_t least = std::min(m, n);
    fit(call.shape().element(1), array(realOf(type), {least}), "result 1");
    fit(call.shape().element(4), info(), "result 4");
    for (unsigned side : {2u, 3u}) {
      const Shape &vectors = call.shape().element(side);
      const int64_t length = side == 2 ? m : n;
      const bool inRows = made.isTurned != (side == 3 && !made.rightIsPlain);
      auto of = [&](int64_t count) { return inRows ? array({count, length}) : array({length, count}); };
      const bool isShort = vectors.isArray() && vectors.sameDims(of(least));
      if (!made.wantsVectors && vectors.isArray())
        continue; // nothing is written there
      fit(vectors, isShort ? of(least) : of(length), "result " + std::to_string(side));
    }
  }

  // --- storage

  void fitLayouts() {
    const auto *constraints = call.find(AttributeKey::OperandLayoutConstraints);
    const auto *shapes = constraints ? std::get_if<llvm::ArrayRef<Shape>>(constraints) : nullptr;
    if (!shapes || target.routine == SolverRoutine::SymmetricProduct)
      return;
    const unsigned rank = unsigned(made.batch.size()) + 2;
    auto check = [&](const Shape &shape, const std::string &what) {
      if (shape.isArray() && !liesInOrder(shape, shape.rank() == rank && !made.isTurned))
        failed(what + " is stored as " + shape.toString() + ", not " + (made.isTurned ? "by rows" : "by columns"));
    };
    for (auto [i, shape] : llvm::enumerate(*shapes))
      check(shape, "operand " + std::to_string(i));
    if (!call.shape().isTuple())
      return check(call.shape(), "its result");
    for (auto [i, shape] : llvm::enumerate(call.shape().elements()))
      check(shape, "result " + std::to_string(i));
  }

  const Target &target;
  const SolverConfig config;
  ElementType type = ElementType::F32;
  SolverCall made{};
};

} // namespace

int64_t SolverCall::numMatrices() const {
  int64_t count = 1;
  for (int64_t size : batch)
    count *= size;
  return count;
}

std::optional<SolverCall> SolverCall::of(const HloInstruction &call, std::string &why) {
  if (call.opcode() != Opcode::CustomCall)
    return std::nullopt;
  const std::optional<Target> target = targetOf(call.string(AttributeKey::CustomCallTarget));
  return target ? Reader(call, *target, why).read() : std::nullopt;
}

std::optional<SolverCall> SolverCall::of(const HloInstruction &call) {
  std::string why;
  return of(call, why);
}

} // namespace hloc
