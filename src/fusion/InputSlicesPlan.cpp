#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace hloc {
namespace {

using Index = llvm::SmallVector<int64_t, 4>;

/// Windows beyond this are left to the loop: each is code of its own.
constexpr size_t maxWindows = 128;
/// Cells of the grid that the edges of windows make, and regions put together of them: more is not worth the code.
constexpr int64_t maxCells = 4096;
constexpr size_t maxRegions = 192;
/// Cost of testing whether an element is in a window, in sectors a warp: about four instructions, six of which a
/// multiprocessor issues while memory moves a sector (H200: 900 to 150 a nanosecond).
constexpr double costOfTest = 4.0 / 6;

/// A part of an array: its size along a dimension, and which of the indices.
struct Extent {
  int64_t array, start, stride, size;
  bool isAll() const { return size == array && stride == 1; }
};
/// Of all dimensions, minor to major.
using Part = llvm::SmallVector<Extent, 4>;

/// The largest power of two that divides all positions in the array where groups of neighbours begin and must end.
/// `endsInside`: the end of the last group, too.
int64_t alignmentOf(const Part &part, bool endsInside) {
  int64_t divisor = 0, unit = 1, run = 1;
  bool inRun = true;
  for (const Extent &extent : part) {
    divisor = std::gcd(divisor, extent.start * unit);
    if (inRun && extent.stride == 1)
      run *= extent.size;
    else if (extent.size > 1) {
      endsInside = true;
      divisor = std::gcd(divisor, extent.stride * unit);
    }
    inRun &= extent.isAll();
    unit *= extent.array;
  }
  if (endsInside)
    divisor = std::gcd(divisor, run);
  return divisor == 0 ? int64_t(1) << 32 : divisor & -divisor;
}

/// Sectors that moving the part takes.
double sectorsOf(const Part &part, unsigned bits) {
  double unit = 1, length = 1, span = 1, offset = 0, pitch = 1, elements = 1;
  bool inRun = true;
  for (const Extent &extent : part) {
    elements *= double(extent.size);
    // Steps along the minor dimension make a run with holes, others several runs.
    if (inRun && extent.stride > 1 && length > 1) {
      pitch = unit * double(extent.stride);
      inRun = false;
    } else if (inRun) {
      length *= double(extent.size);
      span = unit * double((extent.size - 1) * extent.stride + 1);
      offset = unit * double(extent.start);
      pitch = unit * double(extent.array);
      inRun = extent.isAll();
    }
    unit *= double(extent.array);
  }
  auto sectors = [&](double count) { return count * bits / sectorBits; };
  auto isWhole = [&](double count) { return std::fmod(sectors(count), 1.0) == 0; };
  double each = sectors(span) + (isWhole(span) && isWhole(offset) && isWhole(pitch) ? 0 : 1);
  // Neighbouring runs meet in a sector if they are near each other.
  each = std::min({each, std::max(sectors(pitch), sectors(length)), length});
  return std::max(each * (elements / length), sectors(elements));
}

SliceWindow windowOf(const HloInstruction &slice) {
  SliceWindow window;
  for (auto [i, dim] : llvm::enumerate(slice.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice))) {
    int64_t size = slice.shape().dim(unsigned(i));
    window.starts.push_back(dim.start);
    window.strides.push_back(size > 1 ? dim.stride : 1);
    window.sizes.push_back(size);
  }
  return window;
}

SliceWindow wholeOf(const Shape &space) {
  SliceWindow window;
  window.starts.assign(space.rank(), 0);
  window.strides.assign(space.rank(), 1);
  window.sizes.assign(space.dims().begin(), space.dims().end());
  return window;
}

/// The number of `window` in the plan, which gets it if it has none.
unsigned addWindow(InputSlicesPlan &plan, const SliceWindow &window, bool isWhole) {
  for (auto [i, known] : llvm::enumerate(plan.windows))
    if (known.heroes.empty() == isWhole && known.starts == window.starts && known.strides == window.strides &&
        known.sizes == window.sizes)
      return unsigned(i);
  plan.windows.push_back(window);
  return unsigned(plan.windows.size() - 1);
}

bool isEmpty(const SliceWindow &window) { return llvm::is_contained(window.sizes, 0); }

/// Fills in windows and space. Why the hero does not apply, or null.
const char *findWindows(const FusionGraph &graph, InputSlicesPlan &plan) {
  auto isSlice = [](const HloInstruction &instr) { return instr.opcode() == Opcode::Slice; };
  auto heroes = findHeroes(graph, isSlice, readsSamePosition);
  if (heroes.empty())
    return "no output reads a slice elementwise";
  const HloInstruction &first = *heroes.front();
  plan.space = first.operand(0)->shape().withLayout(first.shape().minorToMajor());
  Places<unsigned> windows(graph.computation());
  for (const HloInstruction *hero : heroes) {
    if (!hero->operand(0)->shape().sameDims(plan.space))
      return "slices of arrays of different dimensions";
    if (hero->shape().minorToMajor() != plan.space.minorToMajor())
      return "slices of different layouts";
    unsigned number = addWindow(plan, windowOf(*hero), /*isWhole=*/false);
    if (plan.windows.size() > maxWindows)
      return "too many slices";
    plan.windows[number].heroes.push_back(hero);
    windows.set(*hero, number);
  }
  windows.follow(graph.instructions(), [](const HloInstruction &instr, unsigned operand, unsigned window) {
    return placeIf(readsSamePosition(instr, operand), window);
  });
  auto readsElsewhere = [&](const auto &operand) {
    return windows.at(*operand.value()) && !readsSamePosition(*windows.firstElsewhere(), unsigned(operand.index()));
  };
  if (const HloInstruction *instr = windows.firstElsewhere())
    return llvm::none_of(llvm::enumerate(instr->operands()), readsElsewhere) ? "an output reads two different slices"
                                                                             : "a slice is also read at other indices";
  for (auto [i, root] : llvm::enumerate(graph.roots())) {
    const unsigned *window = windows.at(*root.instr);
    if (!window && !sameArray(root.shape, plan.space))
      return "an output has another shape than the sliced array";
    const unsigned number = window ? *window : addWindow(plan, wholeOf(plan.space), /*isWhole=*/true);
    plan.windows[number].roots.push_back(unsigned(i));
  }
  return plan.windows.size() < 2 ? "all outputs show the same slice" : nullptr;
}

// Windows of the same strides that begin at the same remainder of them can overlap; here they are boxes of quotients.

struct Box {
  Index starts, sizes;
  llvm::SmallVector<unsigned, 4> windows;
};

class RegionMaker {
public:
  RegionMaker(const FusionGraph &graph, InputSlicesPlan &plan) : graph(graph), plan(plan) {}

  void run() {
    std::map<std::pair<Index, Index>, llvm::SmallVector<unsigned>> classes;
    for (auto [i, window] : llvm::enumerate(plan.windows)) {
      if (isEmpty(window))
        continue;
      Index remainders;
      for (auto [start, stride] : llvm::zip_equal(window.starts, window.strides))
        remainders.push_back(start % stride);
      classes[{window.strides, remainders}].push_back(unsigned(i));
    }
    llvm::SmallVector<unsigned> all;
    double cost = 0;
    for (const auto &[steps, windows] : classes) {
      strides = steps.first;
      remainders = steps.second;
      cost += addBest(windows);
      all.append(windows);
    }
    if (classes.size() < 2 || narrowestOutput(graph) < 8)
      return;
    // Steps that lie between each other read the same sectors.
    SliceRegion one = covering(all);
    if (costOf({one}) < cost)
      plan.regions = {std::move(one)};
  }

private:
  /// Of the ways to cut up windows the one that moves least; returns what that costs.
  double addBest(llvm::ArrayRef<unsigned> windows) {
    std::vector<SliceRegion> best = regionsOf(disjoint(windows));
    double least = best.empty() ? std::numeric_limits<double>::infinity() : costOf(best);
    auto consider = [&](std::vector<SliceRegion> other) {
      if (double cost = costOf(other); cost < least) {
        least = cost;
        best = std::move(other);
      }
    };
    std::vector<Box> separate;
    for (unsigned window : windows)
      separate.push_back(boxOf(window));
    consider(regionsOf(separate));
    if (windows.size() > 1 && narrowestOutput(graph) >= 8)
      consider({covering(windows)});
    plan.regions.insert(plan.regions.end(), best.begin(), best.end());
    return least;
  }

  Box boxOf(unsigned number) const {
    const SliceWindow &window = plan.windows[number];
    Box box{{}, Index(window.sizes), {number}};
    for (auto [start, stride] : llvm::zip_equal(window.starts, strides))
      box.starts.push_back(start / stride);
    return box;
  }

  /// All that lies between the ends of the windows, in their steps if these are equal; its elements are tested.
  SliceRegion covering(llvm::ArrayRef<unsigned> windows) const {
    const SliceWindow &first = plan.windows[windows.front()];
    bool sameSteps = llvm::all_of(windows, [&](unsigned number) {
      const SliceWindow &window = plan.windows[number];
      return window.strides == first.strides && llvm::all_of(llvm::seq(window.starts.size()), [&](size_t i) {
               return (window.starts[i] - first.starts[i]) % window.strides[i] == 0;
             });
    });
    SliceRegion region;
    region.windows.append(windows.begin(), windows.end());
    region.strides = sameSteps ? first.strides : Index(first.strides.size(), 1);
    region.elements = 1;
    for (unsigned i = 0; i < region.strides.size(); ++i) {
      int64_t begin = std::numeric_limits<int64_t>::max(), last = 0;
      for (unsigned number : windows) {
        const SliceWindow &window = plan.windows[number];
        begin = std::min(begin, window.starts[i]);
        last = std::max(last, window.starts[i] + (window.sizes[i] - 1) * window.strides[i]);
      }
      region.starts.push_back(begin);
      region.sizes.push_back((last - begin) / region.strides[i] + 1);
      region.elements *= region.sizes[i];
    }
    return region;
  }

  /// Boxes that no two windows share but all those of the box; none if they would be too many.
  std::vector<Box> disjoint(llvm::ArrayRef<unsigned> windows) const {
    std::vector<Box> boxes;
    for (unsigned window : windows)
      boxes.push_back(boxOf(window));
    unsigned rank = strides.size();
    std::vector<Index> cuts(rank);
    int64_t cells = 1;
    for (unsigned i = 0; i < rank; ++i) {
      for (const Box &box : boxes)
        cuts[i].append({box.starts[i], box.starts[i] + box.sizes[i]});
      llvm::sort(cuts[i]);
      cuts[i].erase(std::unique(cuts[i].begin(), cuts[i].end()), cuts[i].end());
      cells *= int64_t(cuts[i].size()) - 1;
      if (cells > maxCells)
        return {};
    }
    std::vector<Box> result;
    for (int64_t cell = 0; cell < cells; ++cell) {
      Box own;
      int64_t rest = cell;
      for (unsigned i = 0; i < rank; ++i) {
        int64_t count = int64_t(cuts[i].size()) - 1, at = rest % count;
        own.starts.push_back(cuts[i][at]);
        own.sizes.push_back(cuts[i][at + 1] - cuts[i][at]);
        rest /= count;
      }
      for (const Box &box : boxes)
        if (llvm::all_of(llvm::seq(rank), [&](unsigned i) {
              return box.starts[i] <= own.starts[i] && own.starts[i] < box.starts[i] + box.sizes[i];
            }))
          own.windows.push_back(box.windows.front());
      if (!own.windows.empty())
        result.push_back(std::move(own));
    }
    for (int64_t dim : plan.space.minorToMajor())
      merge(result, unsigned(dim));
    return result.size() <= maxRegions ? result : std::vector<Box>();
  }

  /// Neighbours along `dim` that belong to the same windows become one.
  static void merge(std::vector<Box> &boxes, unsigned dim) {
    auto key = [dim](const Box &box) {
      Index others = box.starts;
      others.erase(others.begin() + dim);
      return std::pair(others, box.starts[dim]);
    };
    llvm::sort(boxes, [&](const Box &a, const Box &b) { return key(a) < key(b); });
    std::vector<Box> merged;
    for (Box &box : boxes) {
      if (!merged.empty() && joins(merged.back(), box, dim))
        merged.back().sizes[dim] += box.sizes[dim];
      else
        merged.push_back(std::move(box));
    }
    boxes = std::move(merged);
  }

  static bool joins(const Box &a, const Box &b, unsigned dim) {
    if (a.windows != b.windows || a.starts[dim] + a.sizes[dim] != b.starts[dim])
      return false;
    return llvm::all_of(llvm::seq(a.starts.size()),
                        [&](size_t i) { return i == dim || (a.starts[i] == b.starts[i] && a.sizes[i] == b.sizes[i]); });
  }

  SliceRegion regionOf(const Box &box) const {
    SliceRegion region;
    region.strides = strides;
    region.sizes = box.sizes;
    region.windows = box.windows;
    region.elements = 1;
    for (unsigned i = 0; i < strides.size(); ++i) {
      region.starts.push_back(box.starts[i] * strides[i] + remainders[i]);
      region.elements *= box.sizes[i];
    }
    return region;
  }

  std::vector<SliceRegion> regionsOf(llvm::ArrayRef<Box> boxes) const {
    std::vector<SliceRegion> regions;
    for (const Box &box : boxes)
      regions.push_back(regionOf(box));
    return regions;
  }

  /// Sectors, and tests counted as such; infinite if regions meet inside a byte of an output.
  double costOf(llvm::ArrayRef<SliceRegion> regions) const;

  const FusionGraph &graph;
  InputSlicesPlan &plan;
  Index strides, remainders; ///< of the windows at hand
};

/// The region as a part of the sliced array.
Part partOfSpace(const InputSlicesPlan &plan, const SliceRegion &region) {
  Part part;
  for (int64_t dim : plan.space.minorToMajor())
    part.push_back({plan.space.dim(unsigned(dim)), region.starts[dim], region.strides[dim], region.sizes[dim]});
  return part;
}

/// What of the window is in the region: all of it, if they have different steps.
Part partOfWindow(const InputSlicesPlan &plan, const SliceRegion &region, const SliceWindow &window) {
  Part part;
  for (int64_t dim : plan.space.minorToMajor()) {
    Interval own = window.indicesIn(region, dim);
    int64_t step = window.strides[dim] / region.strides[dim];
    int64_t first = (region.starts[dim] + own.lower * region.strides[dim] - window.starts[dim]) / window.strides[dim];
    part.push_back({window.sizes[dim], first, 1, (own.upper - own.lower) / step + 1});
  }
  return part;
}

/// Of groups in an output with elements of `bits`. Parts of it that others are stored to share no byte with it.
int64_t alignmentInOutput(const InputSlicesPlan &plan, const SliceRegion &region, const SliceWindow &window,
                          unsigned bits) {
  Part part = partOfWindow(plan, region, window);
  bool endsInside = llvm::any_of(part, [](const Extent &own) { return own.start + own.size != own.array; });
  return alignmentOf(part, bits < 8 && endsInside);
}

llvm::SmallVector<const HloInstruction *> slicedParameters(const FusionGraph &graph, const Shape &space) {
  llvm::SmallVector<const HloInstruction *> parameters;
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter) && sameArray(parameter->shape(), space))
      parameters.push_back(parameter);
  return parameters;
}

double RegionMaker::costOf(llvm::ArrayRef<SliceRegion> regions) const {
  double cost = 0;
  auto parameters = slicedParameters(graph, plan.space);
  for (const SliceRegion &region : regions) {
    for (const HloInstruction *parameter : parameters)
      cost += sectorsOf(partOfSpace(plan, region), deviceBits(parameter->shape().elementType()));
    for (unsigned number : region.windows) {
      const SliceWindow &window = plan.windows[number];
      for (unsigned root : window.roots) {
        unsigned bits = deviceBits(graph.roots()[root].shape.elementType());
        if (alignmentInOutput(plan, region, window, bits) * bits < 8)
          return std::numeric_limits<double>::infinity();
        cost += sectorsOf(partOfWindow(plan, region, window), bits);
      }
      if (!plan.covers(window, region))
        cost += double(region.elements) / 32 * costOfTest;
    }
  }
  return cost;
}

/// Neighbouring elements of one thread: only what is contiguous and aligned in the sliced parameters and in all
/// outputs.
unsigned choosePerThread(const InputSlicesPlan &plan, const SliceRegion &region, int64_t elementsOfKernel,
                         const FusionGraph &graph, const TargetInfo &target) {
  llvm::SmallVector<unsigned> roots;
  int64_t inOutputs = int64_t(1) << 32;
  unsigned narrowest = 8;
  for (unsigned number : region.windows) {
    const SliceWindow &window = plan.windows[number];
    for (unsigned root : window.roots) {
      unsigned bits = deviceBits(graph.roots()[root].shape.elementType());
      narrowest = std::min(narrowest, bits);
      // Elements that are tested are stored one by one.
      int64_t own = plan.covers(window, region) ? alignmentInOutput(plan, region, window, bits) : 1;
      inOutputs = std::min(inOutputs, own);
      roots.push_back(root);
    }
  }
  int64_t count = elementsPerThread(roots, plan.space.numElements(), elementsOfKernel, graph, target);
  if (!slicedParameters(graph, plan.space).empty())
    count = std::min(count, alignmentOf(partOfSpace(plan, region), false));
  return unsigned(std::min(std::max<int64_t>(count, 8 / narrowest), inOutputs));
}

} // namespace

Interval SliceWindow::indicesIn(const SliceRegion &region, unsigned dim) const {
  int64_t first = (starts[dim] - region.starts[dim]) / region.strides[dim];
  int64_t last = first + (sizes[dim] - 1) * (strides[dim] / region.strides[dim]);
  return Interval{first, last}.intersect({0, region.sizes[dim] - 1});
}

bool InputSlicesPlan::covers(const SliceWindow &window, const SliceRegion &region) const {
  return llvm::all_of(llvm::seq(region.sizes.size()), [&](size_t i) {
    return window.strides[i] == region.strides[i] &&
           window.indicesIn(region, unsigned(i)) == Interval{0, region.sizes[i] - 1};
  });
}

Shape InputSlicesPlan::shapeOf(const SliceRegion &region) const {
  return Shape::array(space.elementType(), region.sizes).withLayout(space.minorToMajor());
}

template <>
HeroMatch<InputSlicesPlan> matchHero<InputSlicesPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                      const TargetInfo &target, PlanContext &) {
  if (graph.roots().size() < 2)
    return Rejection{"only one output"};
  InputSlicesPlan plan;
  if (const char *reason = findWindows(graph, plan))
    return Rejection{reason};
  RegionMaker(graph, plan).run();
  if (plan.regions.empty())
    return Rejection{"no output has elements"};
  int64_t elements = 0;
  for (const SliceRegion &region : plan.regions)
    elements += region.elements;
  llvm::SmallVector<BlockSegment *> segments;
  for (SliceRegion &region : plan.regions) {
    region.perThread = choosePerThread(plan, region, elements, graph, target);
    segments.push_back(&region);
  }
  std::optional<LaunchGeometry> launch = assignBlocks(segments, graph, target);
  if (!launch)
    return Rejection{"too many blocks"};
  return {std::move(plan), *launch};
}

/// Never that of a sliced array, whose elements move. That of a parameter which outputs of one window read elementwise
/// beside it: each element is overwritten by the thread that alone reads it, after it has read it.
template <>
bool mayTakePlace<InputSlicesPlan>(const InputSlicesPlan &plan, const FusionGraph &graph, unsigned root,
                                   unsigned parameter) {
  if (!mayOverwriteElements(graph, root, parameter))
    return false;
  const Places<Own> dependent = dependentInPlace(graph, *graph.parameters()[parameter]);
  return llvm::all_of(plan.windows, [&](const SliceWindow &window) {
    return llvm::is_contained(window.roots, root) ||
           llvm::none_of(window.roots, [&](unsigned other) { return dependent.at(*graph.roots()[other].instr); });
  });
}

/// Operands of slices at the indices of each region, outputs at those of their windows.
template <>
ComputedSpaces computedSpaces<InputSlicesPlan>(const InputSlicesPlan &plan, const FusionGraph &graph,
                                               mlir::MLIRContext *context) {
  ComputedSpaces result;
  for (const SliceRegion &region : plan.regions) {
    ComputedSpace &space = result.spaces.emplace_back();
    llvm::SmallVector<mlir::AffineExpr> indices;
    for (unsigned i = 0; i < region.sizes.size(); ++i)
      indices.push_back(getAffineDimExpr(i, context) * region.strides[i] + region.starts[i]);
    auto map = IndexingMap::fromSizes(mlir::AffineMap::get(indices.size(), 0, indices, context), region.sizes);
    for (unsigned number : region.windows) {
      const SliceWindow &window = plan.windows[number];
      for (const HloInstruction *hero : window.heroes)
        space.values.push_back({hero->operand(0), map});
      if (window.heroes.empty())
        for (unsigned root : window.roots)
          space.values.push_back({graph.roots()[root].instr, map});
    }
  }
  for (const SliceWindow &window : plan.windows) {
    if (isEmpty(window) || window.heroes.empty())
      continue;
    result.kept.append(window.heroes.begin(), window.heroes.end());
    ComputedSpace &space = result.spaces.emplace_back();
    const Shape &slice = window.heroes.front()->shape();
    for (unsigned root : window.roots)
      space.values.push_back({graph.roots()[root].instr, bitcastIndexing(slice, graph.roots()[root].shape, context)});
  }
  return result;
}

template <> unsigned plannedRegisters<InputSlicesPlan>(const InputSlicesPlan &) { return KernelSpec::usualRegisters; }

/// Parameters that are read only where slices are count with the part of them that some region covers.
template <> KernelTraffic trafficOf<InputSlicesPlan>(const InputSlicesPlan &plan, const FusionGraph &graph) {
  llvm::BitVector sliced(graph.computation().instructions().size(), false), elsewhere(sliced);
  for (const SliceWindow &window : plan.windows) {
    for (const HloInstruction *hero : window.heroes)
      sliced[hero->operand(0)->id()] = true;
    for (unsigned root : window.roots)
      (window.heroes.empty() ? sliced : elsewhere)[graph.roots()[root].instr->id()] = true;
  }
  auto isHero = [&](const HloInstruction *instr) {
    return llvm::any_of(plan.windows, [&](const SliceWindow &w) { return llvm::is_contained(w.heroes, instr); });
  };
  for (const HloInstruction *instr : llvm::reverse(graph.instructions())) {
    if (isHero(instr))
      continue;
    for (const HloInstruction *operand : instr->operands()) {
      bool inPlace =
          readsOperandsInPlace(*instr) && operand->shape().isArray() && operand->shape().sameDims(plan.space);
      if (sliced[instr->id()])
        (inPlace ? sliced : elsewhere)[operand->id()] = true;
      if (elsewhere[instr->id()])
        elsewhere[operand->id()] = true;
    }
  }
  double covered = 0;
  for (const SliceRegion &region : plan.regions)
    covered += double(region.elements);
  double part = std::min(covered / double(plan.space.numElements()), 1.0);
  KernelTraffic traffic{0, graph.bytesWritten()};
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter))
      traffic.read += uint64_t(double(parameter->shape().byteSize()) *
                               (sliced[parameter->id()] && !elsewhere[parameter->id()] ? part : 1.0));
  return traffic;
}

std::string InputSlicesPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "input-slices:";
  llvm::ListSeparator separator(";");
  for (const SliceRegion &region : regions) {
    os << separator << " [";
    llvm::ListSeparator comma(",");
    for (unsigned i = 0; i < region.sizes.size(); ++i) {
      os << comma << region.starts[i] << ":" << region.starts[i] + (region.sizes[i] - 1) * region.strides[i] + 1;
      if (region.strides[i] != 1)
        os << ":" << region.strides[i];
    }
    os << "] for roots ";
    llvm::ListSeparator rootComma(",");
    bool tested = false;
    for (unsigned number : region.windows) {
      for (unsigned root : windows[number].roots)
        os << rootComma << root;
      tested |= !covers(windows[number], region);
    }
    os << (tested ? ", tested" : "") << ", " << region.elements << " elements, " << region.perThread << " per thread";
    if (region.rounds > 1)
      os << " in " << region.rounds << " rounds";
    os << ", " << region.blocks << (region.blocks == 1 ? " block" : " blocks");
  }
  return result;
}

} // namespace hloc
