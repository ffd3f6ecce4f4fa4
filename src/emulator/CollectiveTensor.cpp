// Bulk copies of boxes of tensors, and tensor maps that kernels make themselves.
#include "CollectiveParts.h"
#include "TensorMap.h"

#include "fmt/format.h"

#include <cstring>

namespace hloc::emulator {
namespace {

using Pieces = llvm::SmallVector<TensorPiece, 64>;

/// One thread's copy.
struct Box {
  const TensorMap &map;
  Pieces pieces;
};

/// A thread may use what a kernel wrote only behind a fence.proxy.tensormap by itself, or by a thread whose fence it
/// knows of, that was for these bytes.
bool hasAcquired(const Warp &warp, unsigned lane, const Place &place) {
  const Core &core = *warp.core;
  for (const AcquiredMap &acquired : core.launch.acquiredMaps) {
    if (acquired.region != place.region || acquired.offset != place.offset ||
        std::memcmp(acquired.bytes.data(), place.data, tensorMapBytes) != 0)
      continue;
    Trace one = acquired.date;
    for (uint32_t lanes = acquired.date.lanes; lanes; lanes &= lanes - 1) {
      one.lanes = lanes & -lanes;
      const bool own = one.block == core.blockIndex && one.warp == warp.warp && one.lanes == 1u << lane;
      if (own || core.causality.knows(warp.warp, lane, one))
        return true;
    }
  }
  return false;
}

bool isWrittenHere(const Launch &launch, const Place &place) {
  if (!launch.causal || place.space != Space::Global || !launch.windows[place.region].tracked)
    return false;
  const Cell *cells = launch.windows[place.region].cells.get();
  for (uint64_t g = place.offset >> launch.globalShift; g <= (place.offset + tensorMapBytes - 1) >> launch.globalShift;
       ++g)
    if (launch.traces.isWritten(cells[g]))
      return true;
  return false;
}

/// Decoded once for each of a block's maps.
const TensorMap *decodeOnce(Core &core, const uint8_t *bytes, std::string &error) {
  for (const auto &[known, map] : core.tensorMaps)
    if (!std::memcmp(known.data(), bytes, tensorMapBytes))
      return map.get();
  std::optional<TensorMap> map = decodeTensorMap({bytes, tensorMapBytes}, error);
  if (!map)
    return nullptr;
  auto &entry = core.tensorMaps.emplace_back();
  std::memcpy(entry.first.data(), bytes, tensorMapBytes);
  entry.second = std::make_unique<TensorMap>(std::move(*map));
  return entry.second.get();
}

void reportMap(const CollectiveCall &call, unsigned lane, const Place &place, const std::string &why) {
  reportFinding(call.warp, call.at, lane, FindingKind::BadTensorMap,
                [&] { return fmt::format("copies by the tensor map at {}: {}", describe(call.warp, place), why); });
}

/// The map at a generic address, or nothing with a finding.
const TensorMap *findMap(const CollectiveCall &call, unsigned lane, uint64_t address) {
  constexpr unsigned alignment = 64;
  Warp &warp = call.warp;
  Core &core = *warp.core;
  if (address % alignment) {
    reportFinding(warp, call.at, lane, FindingKind::Misaligned, [&] {
      return fmt::format("uses a tensor map at address {:#x}, which is no multiple of {}", address, alignment);
    });
    return nullptr;
  }
  const Place place = placeRun(warp, call.at, Space::Generic, lane, address, tensorMapBytes, Access::Read);
  if (!place.data)
    return nullptr;
  std::string error;
  if (place.space == Space::Shared || place.space == Space::Local)
    error = "it has to lie in global memory or among the parameters";
  if (place.space == Space::Global && core.launch.windows[place.region].watched)
    Checker(warp, call.at, Access::Read).lane(place, lane, tensorMapBytes);
  if (isWrittenHere(core.launch, place) && !hasAcquired(warp, lane, place))
    error = "this kernel wrote it, and no fence.proxy.tensormap::generic.acquire for what it is now came before";
  const TensorMap *map = error.empty() ? decodeOnce(core, place.data, error) : nullptr;
  if (map && map->rank != call.at.shape[0])
    error = fmt::format("it has {} dimensions, the instruction {}", map->rank, call.at.shape[0]);
  if (map && map->recipe.im2col.has_value() != call.at.im2col)
    error = call.at.im2col ? "it is one of tiles, the instruction is one of im2col"
                           : "it is one of im2col, the instruction is one of tiles";
  if (error.empty())
    return map;
  reportMap(call, lane, place, error);
  return nullptr;
}

/// Element `i` of a vector operand.
uint64_t elementOf(const CollectiveCall &call, unsigned operand, unsigned i, unsigned lane) {
  const Source &source = call.source(operand);
  const Source &element = source.kind == Source::Kind::Vector ? source.elements[i] : source;
  const unsigned bits = CollectiveCall::bitsOf(element);
  return CollectiveCall::valueIn(static_cast<const uint8_t *>(call.operands[operand]) + i * warpLanes * bits / 8, bits,
                                 lane);
}

using Coordinates = llvm::SmallVector<int32_t, TensorMapRecipe::maxRank>;

/// `number`: of the operand. Nothing, with a finding, if no box may begin there.
std::optional<Coordinates> findCoordinates(const CollectiveCall &call, unsigned lane, const TensorMap &map,
                                           unsigned number) {
  Coordinates coordinates;
  for (unsigned i = 0; i < map.rank; ++i)
    coordinates.push_back(int32_t(elementOf(call, number, i, lane)));
  const Mode mode = call.at.mode;
  const bool isStore = mode != Mode::TensorLoad && mode != Mode::TensorPrefetch;
  const std::string error = findPlaceError(map, coordinates, isStore);
  if (error.empty())
    return coordinates;
  reportFinding(call.warp, call.at, lane, FindingKind::BadBox, [&] {
    return fmt::format("{} a box that {}",
                       isStore                    ? "stores"
                       : mode == Mode::TensorLoad ? "loads"
                                                  : "prefetches",
                       error);
  });
  return std::nullopt;
}

/// `map`: its place among the operands, before the coordinates. `offsets`: that of the pixels' offsets, if there are.
/// False, with a finding, if no box may begin there.
bool findPieces(const CollectiveCall &call, unsigned lane, unsigned map, unsigned offsets, uint64_t shared, Box &box) {
  const std::optional<Coordinates> coordinates = findCoordinates(call, lane, box.map, map + 1);
  if (!coordinates)
    return false;
  if (!call.at.im2col) {
    findTilePieces(box.map, *coordinates, uint32_t(shared), box.pieces);
    return true;
  }
  llvm::SmallVector<uint16_t, 3> steps;
  for (unsigned i = 0; call.at.offset && i + 2 < box.map.rank; ++i)
    steps.push_back(uint16_t(elementOf(call, offsets, i, lane)));
  findPixelPieces(box.map, *coordinates, steps, uint32_t(shared), box.pieces);
  return true;
}

/// Where the box begins in shared memory, of another block for a load; nothing, with a finding, if it is not all there.
Place placeShared(const CollectiveCall &call, unsigned lane, uint64_t address, const Box &box, Access access) {
  constexpr unsigned alignment = 128;
  if (address % alignment) {
    reportFinding(call.warp, call.at, lane, FindingKind::Misaligned, [&] {
      return fmt::format("copies a box {} byte {} of shared memory, which is no multiple of {}",
                         access == Access::Write ? "to" : "from", address, alignment);
    });
    return {};
  }
  const uint64_t bytes = uint64_t(box.map.rows - 1) * box.map.pitch + box.map.rowBytes;
  const Space space = access == Access::Write ? Space::SharedCluster : Space::Shared;
  return placeRun(call.warp, call.at, space, lane, address, bytes, access);
}

/// The ranges of shared memory that the pieces fill together: swizzled, a box comes in a thousand.
void collectShared(const Box &box, Transfer &transfer) {
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 64> all;
  for (const TensorPiece &piece : box.pieces)
    if (!piece.outside || transfer.direction == Transfer::Direction::Load)
      all.push_back({piece.shared, piece.bytes});
  llvm::sort(all);
  for (auto [offset, bytes] : all)
    if (!transfer.shared.empty() && transfer.shared.back().first + transfer.shared.back().second == offset)
      transfer.shared.back().second += bytes;
    else
      transfer.shared.push_back({offset, bytes});
}

/// What the copy moves; false, with a finding, if some of it may not be touched.
bool makeRuns(const CollectiveCall &call, unsigned lane, const Box &box, Transfer &transfer) {
  const bool store = transfer.direction == Transfer::Direction::Store;
  transfer.map = &box.map;
  collectShared(box, transfer);
  for (const TensorPiece &piece : box.pieces) {
    if (store && piece.outside)
      continue;
    const Access access = store ? Access::Write : Access::Read;
    if (!piece.outside && !placeRun(call.warp, call.at, Space::Global, lane, piece.global, piece.bytes, access).data)
      return false;
    const uint64_t global = piece.outside ? Transfer::nowhere : piece.global;
    transfer.runs.push_back({store ? piece.shared : global, store ? global : piece.shared, piece.bytes});
  }
  return true;
}

/// The type that a reduction of the map's elements has; nothing if there is no such.
std::optional<Type> reducedType(TensorMapType type, Mode operation) {
  const unsigned bits = 8 * bytesOf(type);
  const bool numbers = operation == Mode::Min || operation == Mode::Max;
  switch (operation) {
  case Mode::And:
  case Mode::Or:
  case Mode::Xor:
    return bits == 32 || bits == 64 ? std::optional(Type{TypeClass::Bits, uint8_t(bits), 1}) : std::nullopt;
  case Mode::Inc:
  case Mode::Dec:
    return type == TensorMapType::U32 ? std::optional(Type{TypeClass::Unsigned, 32, 1}) : std::nullopt;
  default:
    break;
  }
  switch (type) {
  case TensorMapType::U32:
  case TensorMapType::U64:
    return Type{TypeClass::Unsigned, uint8_t(bits), 1};
  case TensorMapType::S32:
    return Type{TypeClass::Signed, 32, 1};
  case TensorMapType::S64:
    return numbers ? std::optional(Type{TypeClass::Signed, 64, 1}) : std::nullopt;
  case TensorMapType::F16:
    return Type{TypeClass::Float, 16, 1};
  case TensorMapType::Bf16:
    return Type{TypeClass::Bfloat, 16, 1};
  case TensorMapType::F32:
  case TensorMapType::F32Ftz:
    return numbers ? std::nullopt : std::optional(Type{TypeClass::Float, 32, 1});
  default:
    return std::nullopt;
  }
}

void runLoad(const CollectiveCall &call, unsigned lane) {
  const TensorMap *map = findMap(call, lane, call.value(1, lane));
  if (!map)
    return;
  Transfer transfer;
  Box box{*map, {}};
  const Place to = placeShared(call, lane, call.value(0, lane), box, Access::Write);
  if (!to.data)
    return;
  if (!findPieces(call, lane, 1, 4, to.offset, box))
    return;
  countBox(call.warp, call.at, box.pieces, false);
  transfer.target = to.owner ? to.owner : call.warp.core;
  if (!makeRuns(call, lane, box, transfer))
    return;
  std::optional<uint32_t> ranks;
  if (call.at.multicast)
    ranks = uint32_t(call.value(call.at.offset ? 5 : 4, lane));
  issueToBlocks(call, lane, std::move(transfer), call.value(3, lane), ranks);
}

void runStore(const CollectiveCall &call, unsigned lane) {
  const TensorMap *map = findMap(call, lane, call.value(0, lane));
  if (!map)
    return;
  Transfer transfer;
  transfer.direction = Transfer::Direction::Store;
  Box box{*map, {}};
  const Place from = placeShared(call, lane, call.value(2, lane), box, Access::Read);
  if (!from.data)
    return;
  if (!findPieces(call, lane, 0, 0, from.offset, box))
    return;
  countBox(call.warp, call.at, box.pieces, true);
  if (call.at.mode == Mode::TensorReduce) {
    const std::optional<Type> type = reducedType(map->recipe.type, call.at.combine);
    if (!type)
      return reportFinding(call.warp, call.at, lane, FindingKind::BadTensorMap, [&] {
        return fmt::format("reduces elements of type {}, for which there is no such reduction",
                           nameOf(map->recipe.type).str());
      });
    transfer.reduction = call.at.combine;
    transfer.type = *type;
    transfer.flushes = map->recipe.type == TensorMapType::F32Ftz;
  }
  if (makeRuns(call, lane, box, transfer))
    issueTransfer(call.warp, call.at, lane, std::move(transfer));
}

void runReplace(const CollectiveCall &call, unsigned lane) {
  Warp &warp = call.warp;
  const Place place = placeLane(warp, call.at, call.at.space, lane, call.value(0, lane), tensorMapBytes, Access::Write);
  if (!place.data)
    return;
  Checker(warp, call.at, Access::Read).lane(place, lane, tensorMapBytes);
  Checker(warp, call.at, Access::Write).lane(place, lane, tensorMapBytes);
  const unsigned last = unsigned(call.at.operands.size()) - 1;
  const unsigned ordinal = last == 2 ? unsigned(call.source(1).value) : 0;
  if (!replaceField({place.data, tensorMapBytes}, TensorMapField(call.at.field), ordinal, call.value(last, lane)))
    reportFinding(warp, call.at, lane, FindingKind::BadTensorMap, [&] {
      return fmt::format("changes a tensor map at {}, where there is none, nor zeros to begin with",
                         describe(warp, place));
    });
}

/// Of the whole warp: one copy.
void runCopyMap(const CollectiveCall &call) {
  Warp &warp = call.warp;
  call.requireWholeWarp();
  const unsigned lane = unsigned(llvm::countr_zero(call.mask));
  const Place to = accessLane(warp, call.at, Space::Global, lane, call.value(0, lane), tensorMapBytes, Access::Write);
  const Place from = accessLane(warp, call.at, Space::Shared, lane, call.value(1, lane), tensorMapBytes, Access::Read);
  if (to.data && from.data)
    std::memcpy(to.data, from.data, tensorMapBytes);
  followFence(warp, call.at, call.mask);
}

} // namespace

bool isTensorCopy(const Decoded &at) {
  return at.mode == Mode::TensorLoad || at.mode == Mode::TensorStore || at.mode == Mode::TensorReduce ||
         at.mode == Mode::TensorPrefetch;
}

namespace {

/// Whether a lower lane stores the same box to the same place. The engine is told of a copy once for a warp; compilers
/// let all lanes issue a store.
bool isRepeated(const CollectiveCall &call, unsigned lane) {
  if (call.at.mode != Mode::TensorStore)
    return false;
  auto isSame = [&](unsigned other) {
    bool same = call.value(0, lane) == call.value(0, other) && call.value(2, lane) == call.value(2, other);
    for (unsigned i = 0; i < call.at.shape[0]; ++i)
      same &= elementOf(call, 1, i, lane) == elementOf(call, 1, i, other);
    return same;
  };
  for (uint32_t rest = call.mask & ((1u << lane) - 1); rest; rest &= rest - 1)
    if (isSame(unsigned(llvm::countr_zero(rest))))
      return true;
  return false;
}

} // namespace

void runTensorCopy(const CollectiveCall &call) {
  stepTransfers(*call.warp.core);
  call.forEachLane([&](unsigned lane) {
    if (isRepeated(call, lane))
      return;
    switch (call.at.mode) {
    case Mode::TensorLoad:
      return runLoad(call, lane);
    case Mode::TensorPrefetch: // fills a cache, for which it reads the map
      if (const TensorMap *map = findMap(call, lane, call.value(0, lane)))
        (void)findCoordinates(call, lane, *map, 1);
      return;
    default:
      return runStore(call, lane);
    }
  });
}

void runTensormap(const CollectiveCall &call) {
  if (call.at.mode == Mode::CopyMap)
    return runCopyMap(call);
  call.forEachLane([&](unsigned lane) { runReplace(call, lane); });
}

void acquireTensorMaps(const CollectiveCall &call) {
  Core &core = *call.warp.core;
  Launch &launch = core.launch;
  if (!launch.causal)
    return;
  for (uint32_t rest = call.mask; rest;) {
    const unsigned lane = unsigned(llvm::countr_zero(rest));
    const uint64_t address = call.value(0, lane);
    uint32_t lanes = 0;
    for (uint32_t others = rest; others; others &= others - 1)
      if (call.value(0, unsigned(llvm::countr_zero(others))) == address)
        lanes |= others & -others;
    rest &= ~lanes;
    Place place; // a fence touches nothing: there need not be any memory
    locate(Space::Generic, address, place);
    if (place.space != Space::Global || !admit(call.warp, place, tensorMapBytes, Access::Read))
      continue;
    AcquiredMap &acquired = launch.acquiredMaps.emplace_back();
    acquired.region = place.region;
    acquired.offset = place.offset;
    std::memcpy(acquired.bytes.data(), place.data, tensorMapBytes);
    acquired.date = core.causality.date(call.warp.warp, lanes);
  }
}

} // namespace hloc::emulator
