// The dialect and its attribute.
#include "hloc/dialect/XlaGpu.h"

#include "dialect/Inliner.h"
#include "dialect/KnownMaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

#include "dialect/XlaGpuDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/XlaGpuAttrs.cpp.inc"

namespace {

/// Long maps print once, as `#indexing_map`, `#indexing_map1`, ...
struct AliasInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<IndexingMapAttr>(attribute))
      return AliasResult::NoAlias;
    os << "indexing_map";
    return AliasResult::FinalAlias;
  }
};

bool isRange(Attribute attribute) {
  auto bounds = dyn_cast<ArrayAttr>(attribute);
  if (!bounds || bounds.size() != 2)
    return false;
  auto lower = dyn_cast<IntegerAttr>(bounds[0]), upper = dyn_cast<IntegerAttr>(bounds[1]);
  return lower && upper && lower.getType().isIndex() && upper.getType().isIndex() && lower.getInt() <= upper.getInt();
}

} // namespace

void XlaGpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/XlaGpuAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/XlaGpuOps.cpp.inc"
      >();
  addInterfaces<AliasInterface, CallInliner, KnownMaps>();
}

/// Results of maps that turn out to be constants. (Where a dialect makes none, LLVM 22's greedy driver erases what the
/// other results of the folded op were replaced by, whoever else uses that.)
Operation *XlaGpuDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  return arith::ConstantOp::materialize(builder, value, type, location);
}

LogicalResult XlaGpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == attr::range && !isRange(attribute.getValue()))
    return op->emitOpError("`xla_gpu.range` must be [lower : index, upper : index] with lower <= upper");
  if (name == attr::registers || name == attr::dynamicShared) {
    auto count = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!count || !count.getType().isInteger(32) || count.getInt() < 1)
      return op->emitOpError() << '`' << name << "` must be a positive i32";
  }
  if ((name == attr::block || name == attr::grid)) {
    auto sizes = dyn_cast<DenseI32ArrayAttr>(attribute.getValue());
    if (!sizes || sizes.size() != 3 || llvm::any_of(sizes.asArrayRef(), [](int32_t size) { return size < 1; }))
      return op->emitOpError() << '`' << name << "` must be array<i32: x, y, z> of positive sizes";
  }
  return success();
}

LogicalResult XlaGpuDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                      NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == attr::range && !isRange(attribute.getValue()))
    return op->emitOpError() << "argument " << argument
                             << ": `xla_gpu.range` must be [lower : index, upper : index] with lower <= upper";
  if (name == attr::sliceIndex && !isa<IntegerAttr>(attribute.getValue()))
    return op->emitOpError() << "argument " << argument << ": `xla_gpu.slice_index` must be an integer";
  return success();
}

Attribute IndexingMapAttr::parse(AsmParser &parser, Type) {
  std::string text, piece;
  SMLoc location;
  if (parser.parseLess())
    return {};
  location = parser.getCurrentLocation();
  if (parser.parseString(&text))
    return {};
  while (succeeded(parser.parseOptionalString(&piece)))
    text += piece;
  if (parser.parseGreater())
    return {};
  std::string error;
  std::optional<IndexingMap> map = parseIndexingMap(text, parser.getContext(), error);
  if (!map) {
    parser.emitError(location, "bad indexing map: " + error);
    return {};
  }
  return parser.getChecked<IndexingMapAttr>(location, parser.getContext(), *map);
}

void IndexingMapAttr::print(AsmPrinter &printer) const { printer << "<\"" << getMap().toString() << "\">"; }

LogicalResult IndexingMapAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, IndexingMap map) {
  if (!map.runtimes().empty())
    return emitError() << "an indexing map of xla_gpu has no runtime variables";
  return success();
}
