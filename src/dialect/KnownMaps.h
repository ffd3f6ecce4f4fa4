#pragma once
// KnownMaps: what the context's maps simplify to. The dialect has it, since it has to live as long as the context.

#include "hloc/indexing/SimplifiedMaps.h"

#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"

namespace hloc::xla_gpu {

struct KnownMaps : mlir::DialectInterface::Base<KnownMaps> {
  explicit KnownMaps(mlir::Dialect *dialect) : Base(dialect) {}

  /// Contexts that several threads use have none.
  static bool simplify(IndexingMap &map) {
    auto *dialect = map.context()->getLoadedDialect("xla_gpu");
    const KnownMaps *known =
        dialect && !map.context()->isMultithreadingEnabled() ? dialect->getRegisteredInterface<KnownMaps>() : nullptr;
    return known ? known->maps.simplify(map) : map.simplify();
  }

private:
  mutable SimplifiedMaps maps; // interfaces are handed out as constants
};

} // namespace hloc::xla_gpu
