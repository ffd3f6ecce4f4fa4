#include "fusion/TransposeTile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

namespace hloc {
namespace {

constexpr int64_t lanes = 32;
/// Widest access of a thread: to shared memory, and where buffers are aligned to no more (KernelParameter::alignment).
constexpr int64_t vectorBytes = 16;
/// Of shared memory, for all tiles of a block: fourteen such blocks fill a multiprocessor of 228 KiB.
constexpr int64_t tileBudget = 16 * 1024;
/// What a warp moves at best; the longest run, in elements, only where the other side is narrow.
constexpr int64_t lineBits = 128 * 8, longestRun = 4096;
/// A run of three quarters of what is wanted is not made longer by another dimension.
bool isLongEnough(int64_t elements, int64_t run) { return 4 * elements >= 3 * run; }
/// Elements that a thread turns in registers.
constexpr int64_t maxTurned = 64, maxTurnedBits = 2048;

int64_t product(llvm::ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

int64_t powerOfTwoPart(int64_t value) { return value & -value; }

/// Row-major indices of `linear`.
llvm::SmallVector<int64_t> indicesOf(int64_t linear, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t> indices(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; linear /= sizes[i])
    indices[i] = linear % sizes[i];
  return indices;
}

class TileChooser {
public:
  TileChooser(TransposePlan &plan, const TransposeStreams &input, const TransposeStreams &output, int64_t maxElements,
              const TargetInfo &target)
      : plan(plan), input(input), output(output), maxElements(maxElements), target(target) {
    for (const HloInstruction *hero : plan.heroes) {
      bytesPerElement += TransposePlan::tileBits(*hero) / 8;
      elementBytes = std::max<int64_t>(elementBytes, TransposePlan::tileBits(*hero) / 8);
    }
  }

  TileChoice run() {
    if (!chooseBox())
      return {{}, "the tiles do not fit into shared memory"};
    for (bool ofOutput : {false, true}) {
      const TransposeStreams &streams = ofOutput ? output : input;
      unsigned width = widthOf(plan.walk(ofOutput), streams);
      if (width * streams.storedBits < 8)
        return {{}, "two runs meet inside a byte"};
      // The tile is filled by one access, too.
      if (!ofOutput)
        width = std::min(width, unsigned(vectorBytes / elementBytes));
      (ofOutput ? plan.outputVector : plan.inputVector) = width;
    }
    chooseLayout();
    plan.threads = threadsFor(plan);
    int64_t blocks = blockCount();
    if (blocks > int64_t(target.maxGridX))
      return {{}, "too many tiles"};
    LaunchGeometry launch;
    launch.block = {uint32_t(plan.threads), 1, 1};
    launch.grid = {uint32_t(blocks), 1, 1};
    launch.sharedBytes = plan.tileElements() * bytesPerElement;
    if (launch.sharedBytes > target.staticSharedBytes)
      return {{}, "the tiles do not fit into shared memory"};
    return {launch, nullptr};
  }

private:
  // --- the box

  int64_t blockCount() const {
    int64_t count = 1;
    for (unsigned i = 0; i < plan.inputDims.size(); ++i)
      count *= plan.tilesAlong(i);
    return count;
  }

  /// The longest runs that leave the device filled and the tiles within their budget.
  bool chooseBox() {
    int64_t line = lineBits / std::min(input.narrowestBits, output.narrowestBits);
    // What begins inside sectors shares them with others.
    int64_t least = sharesSectors() ? std::max(line, lanes) : lanes;
    for (int64_t run = longestRun; run >= least; run /= 2) {
      setBox(run, sectorBits);
      if (plan.boxElements() * bytesPerElement <= tileBudget && blockCount() >= 2 * int64_t(target.multiprocessors))
        return true;
    }
    // As many as XLA's tiles have: 32 x 32 elements, of whole lines if it packs them, times a minor dimension that
    // stays.
    bool minorStays = plan.permutation.back() + 1 == int64_t(plan.inputDims.size());
    int64_t few = minorStays ? lanes * lanes * plan.inputDims.back() : std::max(lanes * lanes, line * line);
    for (int64_t run = least; run >= 8; run /= 2) {
      setBox(run, sectorBits);
      if (plan.boxElements() > few)
        setBox(run, 8);
      // Room for the elements between rows stays.
      if (plan.boxElements() <= few &&
          plan.boxElements() * bytesPerElement <= int64_t(target.staticSharedBytes) * 7 / 8)
        return true;
    }
    return false;
  }

  bool sharesSectors() const {
    return plan.inputDims.back() * input.narrowestBits % sectorBits != 0 ||
           plan.inputDims[plan.permutation.back()] * output.narrowestBits % sectorBits != 0;
  }

  /// The smallest box whose runs have `run` elements, or all there are, in both orders, and multiples of `unitBits`.
  void setBox(int64_t run, int64_t unitBits) {
    plan.run = run;
    plan.box.assign(plan.inputDims.size(), 1);
    for (bool ofOutput : {false, true}) {
      int64_t elements = 1;
      int64_t unit = std::min(run, std::max<int64_t>(1, unitBits / (ofOutput ? output : input).narrowestBits));
      const auto walk = plan.walk(ofOutput);
      for (unsigned dim : llvm::reverse(walk.order)) {
        int64_t size = plan.inputDims[dim];
        int64_t step = unit / std::gcd(unit, elements);
        int64_t wanted = llvm::divideCeil(run, elements);
        // A few tiles are of equal size.
        if (int64_t count = llvm::divideCeil(size, wanted); count > 1 && count <= 4)
          wanted = llvm::divideCeil(size, count);
        wanted = llvm::divideCeil(wanted, step) * step;
        plan.box[dim] = std::max(plan.box[dim], std::min(size, wanted));
        elements *= plan.box[dim];
        if (isLongEnough(elements, run) || plan.box[dim] != size)
          break;
      }
    }
  }

  // --- widths

  /// Neighbours in a run that are aligned to as many in every run, and fill an access to the widest stream. Where runs
  /// are parts of the whole array, only its last elements are not.
  unsigned widthOf(const TileWalk &walk, const TransposeStreams &streams) const {
    int64_t most = streams.areScalar ? 1 : vectorBytes * 8 / std::max(streams.widestBits, 4u);
    int64_t divisor = powerOfTwoPart(walk.outer == 0 ? walk.box.back() : std::gcd(walk.dims.back(), walk.box.back()));
    int64_t width = std::min({int64_t(llvm::bit_floor(uint64_t(most))), divisor, maxElements});
    return unsigned(std::max<int64_t>(width, 1));
  }

  /// Two turns a thread, one of many elements, or, if there are many tiles, eight of one; as many more threads as leave
  /// fewer of them without work.
  int64_t threadsFor(TransposePlan candidate) const {
    int64_t turned = int64_t(candidate.outputVector) * candidate.tileVector;
    bool hasManyTiles = blockCount() >= int64_t(target.multiprocessors);
    int64_t each = turned == maxTurned ? 1 : turned == 1 && hasManyTiles ? 8 : 2;
    int64_t turns = candidate.boxElements() / turned / each;
    int64_t least = std::clamp<int64_t>(llvm::bit_floor(uint64_t(std::max<int64_t>(turns, 1))), 64, 256);
    int64_t best = least, bestSlots = 0;
    for (int64_t threads = least; threads <= std::min<int64_t>(2 * least, 256); threads += lanes) {
      candidate.threads = threads;
      int64_t slots = 0;
      for (bool ofOutput : {false, true}) {
        Groups groups(candidate, ofOutput);
        slots += llvm::divideCeil(groups.count, groups.active) * threads;
      }
      if (bestSlots == 0 || slots < bestSlots) {
        best = threads;
        bestSlots = slots;
      }
    }
    return best;
  }

  /// How a walk is dealt to threads.
  struct Groups {
    llvm::SmallVector<int64_t> sizes;
    int64_t count, active;
    int64_t vector, turned;
    llvm::SmallVector<int64_t> units; ///< elements of a group along each dimension

    Groups(const TransposePlan &plan, bool ofOutput)
        : vector(ofOutput ? plan.outputVector : plan.inputVector), turned(ofOutput ? plan.tileVector : 1) {
      TileWalk walk = plan.walk(ofOutput);
      for (unsigned i = 0; i < walk.box.size(); ++i) {
        bool isMinor = i < walk.outer && walk.order[i] + 1 == plan.inputDims.size();
        units.push_back(i == walk.outer ? vector : isMinor ? turned : 1);
        sizes.push_back(walk.box[i] / units.back());
      }
      count = product(sizes);
      active = plan.activeThreads(sizes.back());
    }
  };

  // --- the layout of a tile

  /// Conflicts and cost of the accesses to a tile, and those to memory on both sides.
  struct Cost {
    int64_t conflicts = 0;
    double perElement = 0; ///< instructions and passes of a warp
  };

  /// All layouts in which both orders may find their banks, widest accesses first.
  void chooseLayout() {
    TransposePlan best = plan;
    Cost bestCost;
    auto consider = [&](TransposePlan candidate) {
      Cost cost = costOf(candidate);
      if (bestCost.perElement == 0 || cost.perElement < bestCost.perElement) {
        best = candidate;
        bestCost = cost;
      }
      return cost.conflicts == 0;
    };
    auto considerPads = [&](TransposePlan candidate) {
      for (int64_t period : periodsOf(candidate)) {
        for (int64_t padBytes : {vectorBytes, int64_t(8), int64_t(4), int64_t(2 * vectorBytes)}) {
          candidate.period = period;
          candidate.pad = padBytes / elementBytes;
          if (candidate.pad > 0 && consider(candidate))
            return true;
        }
      }
      candidate.period = 1;
      candidate.pad = 0;
      return consider(candidate);
    };
    bool good = false;
    for (unsigned vector : tileVectors()) {
      TransposePlan candidate = plan;
      candidate.tileVector = vector;
      good = good || considerPads(candidate);
    }
    if (bestCost.perElement == 0 || bestCost.conflicts > 0) {
      TransposePlan candidate = plan;
      for (bool inOutputOrder : {false, true}) {
        candidate.inOutputOrder = inOutputOrder;
        considerPads(candidate);
        candidate.inputVector = std::min(plan.inputVector, 8 / std::min(8u, input.storedBits));
        considerPads(candidate);
        candidate.inputVector = plan.inputVector;
      }
    }
    plan = best;
  }

  /// Elements after which the tile's order comes back to the same element of the other order's runs.
  llvm::SmallVector<int64_t> periodsOf(const TransposePlan &candidate) const {
    TileWalk own = candidate.walk(candidate.inOutputOrder), other = candidate.walk(!candidate.inOutputOrder);
    // The first dimension of the other order that is not contiguous here.
    int64_t stride = 1;
    size_t same = 0;
    while (same < own.order.size() &&
           own.order[own.order.size() - 1 - same] == other.order[other.order.size() - 1 - same])
      ++same;
    unsigned dim = other.order[other.order.size() - 1 - same];
    for (unsigned inner : llvm::reverse(own.order)) {
      if (inner == dim)
        break;
      stride *= candidate.box[inner];
    }
    int64_t width = candidate.inOutputOrder ? candidate.inputVector : candidate.outputVector;
    llvm::SmallVector<int64_t> periods = {stride * width};
    if (width > 1)
      periods.push_back(stride);
    int64_t banks = lanes * 4 / elementBytes;
    if (stride < banks && banks % stride == 0)
      periods.push_back(banks);
    return periods;
  }

  /// Widths in which elements can be turned in registers, the best first.
  llvm::SmallVector<unsigned> tileVectors() const {
    unsigned minor = plan.inputDims.size() - 1;
    auto isComplexHero = [](const HloInstruction *hero) { return isComplex(hero->shape().elementType()); };
    if (plan.walk(true).isInRun(minor) || input.areScalar || output.areScalar ||
        llvm::any_of(plan.heroes, isComplexHero))
      return {};
    llvm::SmallVector<unsigned> vectors;
    int64_t size = plan.inputDims[minor], vector = plan.outputVector;
    int64_t most = std::min({maxTurned, maxTurnedBits / 8 / elementBytes, maxElements}) / vector;
    TransposePlan whole = plan;
    whole.tileVector = unsigned(size);
    if (size == plan.box[minor] && size <= most && vector > 1 && !llvm::isPowerOf2_64(size) && whole.readsWholeRows())
      vectors.push_back(unsigned(size));
    int64_t widest = std::min({vectorBytes / elementBytes, most, powerOfTwoPart(std::gcd(plan.box[minor], size))});
    for (widest = llvm::bit_floor(uint64_t(std::max<int64_t>(widest, 1))); widest > 1; widest /= 2)
      vectors.push_back(unsigned(widest));
    return vectors;
  }

  Cost costOf(TransposePlan candidate) const {
    Cost cost;
    candidate.threads = threadsFor(candidate);
    for (bool reading : {false, true})
      addSide(candidate, reading, cost);
    return cost;
  }

  /// The first and the last step of the first warp.
  void addSide(const TransposePlan &candidate, bool reading, Cost &cost) const {
    TileWalk walk = candidate.walk(reading);
    Groups groups(candidate, reading);
    int64_t vector = groups.vector, turned = groups.turned;
    int64_t steps = llvm::divideCeil(groups.count, groups.active);
    // Elements of one access to the tile.
    bool wholeRows = reading && candidate.readsWholeRows();
    bool along = candidate.inOutputOrder == reading;
    int64_t chunk = wholeRows || (turned == 1 && along) ? vector : turned;
    if (candidate.pad != 0)
      chunk = std::min({chunk, powerOfTwoPart(candidate.period), powerOfTwoPart(candidate.pad)});
    chunk = std::min(chunk, vectorBytes / elementBytes);
    // Where in a block they begin: in the run, along the operand's minor dimension.
    llvm::SmallVector<std::pair<int64_t, int64_t>> starts;
    if (wholeRows || turned == 1)
      for (int64_t i = 0; i < vector * turned; i += chunk)
        starts.push_back({i / turned, i % turned});
    else
      for (int64_t element = 0; element < vector; ++element)
        for (int64_t column = 0; column < turned; column += chunk)
          starts.push_back({element, column});
    int64_t accesses = 0, passes = 0, sampled = 0;
    llvm::SmallVector<int64_t> strides = stridesInTile(candidate);
    for (int64_t step : {int64_t(0), steps - 1}) {
      llvm::SmallVector<llvm::SmallVector<int64_t>, 32> firsts; // of the groups of a warp
      for (int64_t lane = 0; lane < std::min(lanes, groups.active); ++lane) {
        int64_t group = step * groups.active + lane;
        if (group >= groups.count)
          break;
        firsts.push_back(indicesOf(group, groups.sizes));
        for (auto [index, unit] : llvm::zip(firsts.back(), groups.units))
          index *= unit;
      }
      for (auto [element, column] : starts) {
        llvm::SmallVector<int64_t, 32> addresses;
        for (llvm::SmallVector<int64_t> local : firsts) {
          for (unsigned i = 0; i < local.size(); ++i)
            local[i] += i == walk.outer ? element : groups.units[i] > 1 ? column : 0;
          int64_t position = positionInBox(candidate, walk, local, strides);
          addresses.push_back((position + position / candidate.period * candidate.pad) * elementBytes);
        }
        auto [least, most] = passesOf(addresses, chunk * elementBytes);
        passes += most;
        cost.conflicts += most - least;
        ++accesses;
      }
      sampled += lanes * vector * turned;
    }
    cost.perElement += double(accesses + passes + 2 * turned) / double(sampled);
  }

  /// Of the operand's dimensions, padding not counted.
  static llvm::SmallVector<int64_t> stridesInTile(const TransposePlan &candidate) {
    llvm::SmallVector<int64_t> strides(candidate.inputDims.size());
    int64_t stride = 1;
    const auto walk = candidate.walk(candidate.inOutputOrder);
    for (unsigned dim : llvm::reverse(walk.order)) {
      strides[dim] = stride;
      stride *= candidate.box[dim];
    }
    return strides;
  }

  static int64_t positionInBox(const TransposePlan &candidate, const TileWalk &walk, llvm::ArrayRef<int64_t> local,
                               llvm::ArrayRef<int64_t> strides) {
    int64_t position = 0, inRun = local.back();
    for (unsigned i = 0; i < walk.outer; ++i)
      position += local[i] * strides[walk.order[i]];
    for (size_t i = walk.order.size(); --i > walk.outer;) {
      int64_t size = candidate.box[walk.order[i]];
      position += inRun % size * strides[walk.order[i]];
      inRun /= size;
    }
    return position + inRun * strides[walk.order[walk.outer]];
  }

  /// Least passes of such an access, and those that the addresses need. Banks are 4 bytes wide; 8 and 16 bytes go by
  /// half and quarter warps.
  static std::pair<int64_t, int64_t> passesOf(llvm::ArrayRef<int64_t> addresses, int64_t bytes) {
    size_t together = lanes / std::max<int64_t>(1, bytes / 4);
    int64_t least = 0, most = 0;
    for (; !addresses.empty(); addresses = addresses.drop_front(std::min(together, addresses.size()))) {
      llvm::SmallVector<int64_t, 64> words;
      for (int64_t address : addresses.take_front(together))
        for (int64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
          words.push_back(word);
      if (!llvm::is_sorted(words))
        std::sort(words.begin(), words.end()); // llvm::sort calls qsort for integers
      words.erase(std::unique(words.begin(), words.end()), words.end());
      int64_t perBank[lanes] = {}, worst = 0;
      for (int64_t word : words)
        worst = std::max(worst, ++perBank[word % lanes]);
      most += worst;
      least += 1;
    }
    return {least, most};
  }

  TransposePlan &plan;
  const TransposeStreams &input, &output;
  int64_t maxElements;
  const TargetInfo &target;
  int64_t bytesPerElement = 0; ///< of all tiles
  int64_t elementBytes = 1;    ///< of the widest tile
};

} // namespace

void TransposeStreams::addStored(const Shape &shape) {
  addLoaded(shape);
  storedBits = std::min(storedBits, deviceBits(shape.elementType()));
}

void TransposeStreams::addLoaded(const Shape &shape) {
  unsigned bits = deviceBits(shape.elementType());
  narrowestBits = std::min(narrowestBits, bits);
  widestBits = std::max(widestBits, bits);
  areScalar |= isComplex(shape.elementType());
}

TileChoice chooseTile(TransposePlan &plan, const TransposeStreams &input, const TransposeStreams &output,
                      int64_t maxElements, const TargetInfo &target) {
  return TileChooser(plan, input, output, maxElements, target).run();
}

bool TileWalk::isInRun(unsigned dim) const { return llvm::is_contained(llvm::ArrayRef(order).drop_front(outer), dim); }

TileWalk TransposePlan::walk(bool ofOutput) const {
  TileWalk result;
  for (unsigned i = 0; i < inputDims.size(); ++i)
    result.order.push_back(ofOutput ? unsigned(permutation[i]) : i);
  result.outer = result.order.size() - 1;
  for (int64_t elements = 1; result.outer > 0; --result.outer) {
    unsigned dim = result.order[result.outer];
    elements *= box[dim];
    if (isLongEnough(elements, run) || box[dim] != inputDims[dim])
      break;
  }
  result.dims.push_back(1);
  result.box.push_back(1);
  for (unsigned i = result.order.size(); i-- > result.outer;) {
    result.dims.back() *= inputDims[result.order[i]];
    result.box.back() *= box[result.order[i]];
  }
  for (unsigned i = result.outer; i-- > 0;) {
    result.dims.insert(result.dims.begin(), inputDims[result.order[i]]);
    result.box.insert(result.box.begin(), box[result.order[i]]);
  }
  return result;
}

int64_t TransposePlan::tilesAlong(unsigned dim) const { return llvm::divideCeil(inputDims[dim], box[dim]); }

int64_t TransposePlan::boxElements() const { return product(box); }

int64_t TransposePlan::tileElements() const {
  int64_t elements = boxElements();
  return elements + (elements - 1) / period * pad;
}

bool TransposePlan::readsWholeRows() const {
  int64_t row = permutation.back();
  return tileVector > 1 && tileVector == inputDims.back() && row + 2 == int64_t(inputDims.size()) &&
         box[row] % outputVector == 0 && (pad == 0 || period % outputVector == 0);
}

int64_t TransposePlan::activeThreads(int64_t groups) const {
  return groups < threads ? threads / groups * groups : threads;
}

unsigned TransposePlan::tileBits(const HloInstruction &hero) {
  return std::max(8u, deviceBits(hero.shape().elementType()));
}

} // namespace hloc
