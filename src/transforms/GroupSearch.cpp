#include "GroupSearch.h"

#include "FusionPolicy.h"

#include "OpWork.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <algorithm>
#include <map>
#include <set>

namespace hloc {
namespace {

/// Less is not worth a larger kernel: the model is not so exact.
constexpr double leastGain = 0.02e-6;
/// A value that more kernels read stays in memory.
constexpr size_t mostReaders = 24;
/// Kernels that move more are not merged just because they are independent.
constexpr double bytesOfSmallKernel = 1 << 20, bytesOfTinyKernel = 1 << 18;
/// Kernels looked at to find out whether two wait for each other; after that they are taken to do so.
constexpr unsigned mostVisits = 2000;
constexpr unsigned mostSweeps = 4;
constexpr size_t mostInstructionsOfTwoSearches = 2000;
/// Of dots that kernels of rows and the like compute on their way: kernels for dots do better with longer ones.
constexpr double mostStepsInside = 64;
constexpr unsigned none = ~0u;

/// Same bytes in the same order.
bool isRenaming(const HloInstruction &instr) {
  auto isRowMajor = [](const Shape &shape) { return llvm::is_sorted(shape.minorToMajor(), std::greater<>()); };
  if (instr.opcode() == Opcode::Bitcast)
    return instr.shape().isArray() && instr.operand(0)->shape().isArray();
  return instr.opcode() == Opcode::Reshape && isRowMajor(instr.shape()) && isRowMajor(instr.operand(0)->shape());
}

bool isContraction(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::Dot:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot:
  case Opcode::Convolution:
    return true;
  default:
    return false;
  }
}

/// What only its hero makes well.
bool needsHero(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Sort || instr.opcode() == Opcode::Scatter;
}

struct Group {
  llvm::SmallVector<HloInstruction *> members, roots;
  llvm::SmallVector<uint32_t> operands; ///< ids of what kernels make and this one reads
  KernelCost cost;
  unsigned level = 0; ///< higher than those of all whose results it reads
  bool alive = true;
  bool fixed = false;   ///< takes part in no step
  bool emitted = true;  ///< is a kernel; otherwise control flow and structure
  unsigned version = 0; ///< of its contents
};

/// A step: what becomes of which groups.
struct Move {
  double gain = 0;
  bool together = false;               ///< one group of all; otherwise each reader computes it
  llvm::SmallVector<unsigned> groups;  ///< the producer's first
  llvm::SmallVector<FoundGroup> made;  ///< of the readers, or the one
  llvm::SmallVector<KernelCost> costs; ///< of these
  double bytes = 0;                    ///< saved
  std::string reason;                  ///< why there is none, or why it does not pay
};

class Search {
public:
  Search(const HloComputation &computation, const std::vector<bool> &needed, llvm::ArrayRef<RowGroup> rows,
         const TargetInfo &target, std::vector<FusionDecision> *decisions)
      : computation(computation), needed(needed), users(computation), decisions(decisions),
        cost(computation, target, [this](const HloInstruction &instr) { return mayUpdate(instr); }),
        groupOf(computation.instructions().size(), none), readers(groupOf.size()), pinned(groupOf.size(), false),
        outside(groupOf.size(), false), base(groupOf.size(), false), stamps(groupOf.size(), 0),
        verdicts(groupOf.size()) {
    classify();
    addGroups(rows);
  }

  FoundGroups run() {
    fuseProducers();
    for (unsigned sweep = 0; sweep < mostSweeps && mergeKernels(); ++sweep)
      ;
    fuseProducers();
    return result();
  }

private:
  llvm::ArrayRef<HloInstruction *> instructions() const { return computation.instructions(); }
  HloInstruction *at(uint32_t id) const { return instructions()[id]; }

  // What there is.

  /// The instruction whose kernel makes a value.
  static HloInstruction *sourceOf(HloInstruction *value) {
    while (value->opcode() == Opcode::GetTupleElement)
      value = value->operand(0);
    return value;
  }

  bool isNode(const HloInstruction &instr) const { return !isFusible(instr) && !base[instr.id()]; }
  /// Is there a kernel, or what is refused as one?
  bool isEmitted(const HloInstruction &instr) const {
    return !outside[instr.id()] && !isStep(instr) && instr.opcode() != Opcode::Fusion &&
           (isFusible(instr) || !isStructure(instr));
  }

  void classify() {
    for (HloInstruction *instr : instructions())
      base[instr->id()] = instr->opcode() == Opcode::Parameter ||
                          (instr->opcode() == Opcode::GetTupleElement && base[sourceOf(instr)->id()]);
    auto pin = [&](HloInstruction *value) {
      HloInstruction *source = sourceOf(value);
      while (canStayOutside(*source)) {
        outside[source->id()] = true;
        source = sourceOf(source->operand(0));
      }
      pinned[source->id()] = true;
    };
    // Operands of what takes part in nothing; those of renamings last, when it is known who else needs what is behind.
    llvm::SmallVector<HloInstruction *> values{computation.root()};
    for (HloInstruction *instr : instructions())
      if (needed[instr->id()] && isNode(*instr) && instr->opcode() != Opcode::GetTupleElement)
        llvm::copy_if(instr->operands(), std::back_inserter(values), [&](HloInstruction *operand) {
          return !isEmitted(*instr) || operand->numOperands() > 0 || base[operand->id()];
        });
    for (HloInstruction *value : values)
      if (!isRenaming(*sourceOf(value)))
        pin(value);
    for (HloInstruction *value : values)
      if (isRenaming(*sourceOf(value)))
        pin(value);
  }

  /// A renaming that is needed in memory, of what is there anyway.
  bool canStayOutside(const HloInstruction &value) const {
    if (!isRenaming(value))
      return false;
    HloInstruction *behind = sourceOf(value.operand(0));
    if (base[behind->id()])
      return value.opcode() == Opcode::Bitcast;
    return !behind->shape().isTuple() && behind->numOperands() > 0 &&
           (pinned[behind->id()] || outside[value.id()] || users.of(behind).size() > 1 || isNode(*behind));
  }

  /// May a kernel overwrite it?
  bool mayUpdate(const HloInstruction &value) const {
    const HloInstruction *source = sourceOf(const_cast<HloInstruction *>(&value));
    if (source->opcode() == Opcode::Parameter)
      return !computation.isEntry();
    return users.of(&value).size() == 1;
  }

  /// Computed where it is read, whatever that costs: next to nothing.
  bool isFree(const HloInstruction &instr) const {
    if (pinned[instr.id()])
      return false;
    if (instr.numOperands() == 0 || instr.opcode() == Opcode::Broadcast || isRenaming(instr))
      return true;
    if (!isElementwise(instr.opcode()) || users.of(&instr).size() != 1)
      return false;
    const HloInstruction &user = *users.of(&instr).front();
    return needed[user.id()] && isElementwise(user.opcode()) && isFusible(user) && user.shape().isArray() &&
           instr.shape().isArray() && user.shape().sameDims(instr.shape());
  }

  void addGroups(llvm::ArrayRef<RowGroup> rows) {
    std::vector<unsigned> seedOf(groupOf.size(), none);
    std::vector<bool> inside(groupOf.size(), false);
    for (auto [number, row] : llvm::enumerate(rows)) {
      for (HloInstruction *root : row.roots)
        seedOf[root->id()] = unsigned(number);
      for (HloInstruction *instr : row.inside)
        inside[instr->id()] = true;
    }
    std::vector<unsigned> groupOfSeed(rows.size(), none);
    for (HloInstruction *instr : instructions()) {
      const uint32_t id = instr->id();
      if (!needed[id] || base[id] || instr->opcode() == Opcode::GetTupleElement)
        continue;
      const unsigned seed = seedOf[id];
      if (seed != none) {
        if (groupOfSeed[seed] == none) {
          groupOfSeed[seed] = unsigned(groups.size());
          groups.emplace_back();
        }
        groups[groupOfSeed[seed]].roots.push_back(instr);
        groupOf[id] = groupOfSeed[seed];
        continue;
      }
      const bool isSource = instr->numOperands() == 0 && !pinned[id] && !instr->reachesSideEffect() && !isStep(*instr);
      if (isSource || (isFusible(*instr) && !outside[id] && (isFree(*instr) || (inside[id] && !pinned[id]))))
        continue;
      groupOf[id] = unsigned(groups.size());
      Group &group = groups.emplace_back();
      group.roots.push_back(instr);
      group.fixed = !isFusible(*instr) || outside[id];
      group.emitted = isEmitted(*instr);
    }
    for (unsigned number = 0; number < groups.size(); ++number) {
      Group &group = groups[number];
      if (group.fixed && !group.emitted)
        group.members = group.roots;
      else
        group.members = closure(group.roots, nullptr);
      setOperands(number);
    }
    for (Group &group : groups) // in the order of the computation, but for groups of rows
      if (!group.fixed)
        group.cost = cost.of(group.members, group.roots);
    for (unsigned number = 0; number < groups.size(); ++number)
      raiseReaders(number);
  }

  /// What kernels of these roots compute, `extra` included.
  llvm::SmallVector<HloInstruction *> closure(llvm::ArrayRef<HloInstruction *> roots, const HloInstruction *extra) {
    ++stamp;
    llvm::SmallVector<HloInstruction *> pending(roots.begin(), roots.end()), members;
    for (HloInstruction *root : roots)
      stamps[root->id()] = stamp;
    llvm::SmallPtrSet<const HloInstruction *, 8> own(roots.begin(), roots.end());
    own.insert(extra);
    while (!pending.empty()) {
      HloInstruction *instr = pending.pop_back_val();
      members.push_back(instr);
      for (HloInstruction *operand : instr->operands()) {
        if (stamps[operand->id()] == stamp)
          continue;
        HloInstruction *source = sourceOf(operand);
        if (base[operand->id()] || (groupOf[source->id()] != none && !own.contains(source)))
          continue;
        stamps[operand->id()] = stamp;
        pending.push_back(operand);
      }
    }
    llvm::sort(members, [](auto *a, auto *b) { return a->id() < b->id(); });
    return members;
  }

  void setOperands(unsigned number) {
    Group &group = groups[number];
    for (uint32_t old : group.operands)
      llvm::erase(readers[old], number);
    group.operands.clear();
    ++stamp;
    for (HloInstruction *member : group.members)
      stamps[member->id()] = stamp;
    for (HloInstruction *member : group.members)
      for (HloInstruction *operand : member->operands()) {
        HloInstruction *source = base[operand->id()] ? operand : sourceOf(operand);
        if (stamps[operand->id()] == stamp || stamps[source->id()] == stamp)
          continue;
        stamps[source->id()] = stamp;
        group.operands.push_back(source->id());
        readers[source->id()].push_back(number);
      }
    ++group.version;
  }

  /// Gives the readers of a group higher levels than its own, and so on.
  void raiseReaders(unsigned number) {
    llvm::SmallVector<unsigned> pending{number};
    while (!pending.empty()) {
      const Group &group = groups[pending.pop_back_val()];
      for (HloInstruction *root : group.roots)
        for (unsigned reader : readers[root->id()])
          if (groups[reader].level <= group.level && &groups[reader] != &group) {
            groups[reader].level = group.level + 1;
            pending.push_back(reader);
          }
    }
  }

  /// Does a group wait for another of them through one that is not among them?
  bool waitForEachOther(llvm::ArrayRef<unsigned> all) {
    unsigned highest = 0, visits = 0;
    for (unsigned one : all)
      highest = std::max(highest, groups[one].level);
    ++visit;
    visited.resize(groups.size(), 0);
    llvm::SmallVector<unsigned> pending;
    for (unsigned one : all)
      for (HloInstruction *root : groups[one].roots)
        for (unsigned reader : readers[root->id()])
          if (!llvm::is_contained(all, reader) && groups[reader].level < highest)
            pending.push_back(reader);
    while (!pending.empty()) {
      const unsigned one = pending.pop_back_val();
      if (visited[one] == visit)
        continue;
      visited[one] = visit;
      if (++visits > mostVisits)
        return true;
      for (HloInstruction *root : groups[one].roots)
        for (unsigned reader : readers[root->id()]) {
          if (llvm::is_contained(all, reader))
            return true;
          if (groups[reader].level < highest)
            pending.push_back(reader);
        }
    }
    return false;
  }

  /// A loop's array that is updated where it lies, however large it is.
  bool updatesState(const HloInstruction &instr) const {
    return !computation.isEntry() && instr.opcode() == Opcode::DynamicUpdateSlice && base[instr.operand(0)->id()];
  }

  /// Would one kernel of all make a loop's next state while another, which seems to wait for it, reads the last one?
  bool replacesWhatIsReadLater(llvm::ArrayRef<unsigned> all, llvm::ArrayRef<HloInstruction *> roots) const {
    if (computation.isEntry() || computation.root()->opcode() != Opcode::Tuple)
      return false;
    unsigned level = 0;
    for (unsigned one : all)
      level = std::max(level, groups[one].level);
    for (auto [index, result] : llvm::enumerate(computation.root()->operands())) {
      if (!llvm::is_contained(roots, result))
        continue;
      for (const HloInstruction *state : instructions())
        if (state->opcode() == Opcode::GetTupleElement && state->operand(0)->opcode() == Opcode::Parameter &&
            state->intOr(AttributeKey::Index, 0) == int64_t(index))
          for (unsigned reader : readers[state->id()])
            if (groups[reader].level > level && !llvm::is_contained(all, reader))
              return true;
    }
    return false;
  }

  // Steps.

  /// A kernel of `roots` in place of others, or the reason why there is none.
  bool make(llvm::SmallVector<HloInstruction *> roots, const HloInstruction *extra, Move &move) {
    FoundGroup &made = move.made.emplace_back();
    made.roots = std::move(roots);
    made.members = closure(made.roots, extra);
    KernelCost &own = move.costs.emplace_back(cost.of(made.members, made.roots));
    unsigned contractions = 0;
    bool isLong = false;
    for (const HloInstruction *member : made.members) {
      if (isContraction(*member)) {
        ++contractions;
        isLong |= readsPerElement(*member, 0) > mostStepsInside;
      }
      if ((needsHero(*member) || updatesState(*member)) && own.hero != text(member->opcode()))
        own.impossible = fmt::format("`{}` has to be stored by its own kernel", member->name().str());
    }
    if (contractions > 1)
      own.impossible = "a kernel has one dot or convolution";
    else if (contractions == 1 && own.hero != "loop" && isLong)
      own.impossible = fmt::format("a dot of more than {} steps is not computed inside of a `{}` kernel",
                                   mostStepsInside, own.hero.str());
    move.reason = own.impossible;
    return own.impossible.empty();
  }

  void weigh(Move &move) const {
    double before = 0, after = 0, bytes = 0, workBefore = 0, work = 0;
    for (unsigned one : move.groups) {
      before += groups[one].cost.seconds;
      bytes += groups[one].cost.bytes;
      workBefore += groups[one].cost.work;
    }
    for (const KernelCost &made : move.costs) {
      after += made.seconds;
      bytes -= made.bytes;
      work += made.work;
    }
    move.gain = before - after;
    move.bytes = bytes;
    if (move.gain < leastGain)
      move.reason = work > 1.5 * workBefore ? fmt::format("it would be computed again: {:.1f} times the work",
                                                          work / std::max(1.0, workBefore))
                    : move.costs.size() == 1 && move.costs.front().hero == "loop" && decides(move.made.front())
                        ? "one kernel of all would leave each thread a loop of its own"
                        : "nothing is saved";
  }

  static bool decides(const FoundGroup &group) {
    return llvm::any_of(group.members, [](const HloInstruction *instr) { return decidesHero(*instr); });
  }

  bool isWorth(const Move &move) const { return move.reason.empty() && move.gain >= leastGain; }

  Move duplicate(const HloInstruction &value, llvm::ArrayRef<unsigned> into) {
    Move move;
    move.groups.push_back(groupOf[value.id()]);
    llvm::append_range(move.groups, into);
    for (unsigned reader : into)
      if (!make(groups[reader].roots, &value, move))
        return move;
    weigh(move);
    return move;
  }

  /// All of them one kernel.
  Move unite(llvm::ArrayRef<unsigned> all) {
    Move move;
    move.together = true;
    move.groups.assign(all.begin(), all.end());
    if (waitForEachOther(all)) {
      move.reason = "other kernels stand between";
      return move;
    }
    llvm::SmallVector<HloInstruction *> roots;
    for (unsigned one : all)
      for (HloInstruction *root : groups[one].roots)
        if (pinned[root->id()] ||
            llvm::any_of(readers[root->id()], [&](unsigned reader) { return !llvm::is_contained(all, reader); }))
          roots.push_back(root);
    if (llvm::any_of(roots, [](auto *root) { return root->shape().isTuple(); }) && roots.size() > 1) {
      move.reason = "a tuple is a kernel's only result";
      return move;
    }
    if (replacesWhatIsReadLater(all, roots)) {
      move.reason = "a loop's state would be replaced before it is read";
      return move;
    }
    llvm::sort(roots, [](auto *a, auto *b) { return a->id() < b->id(); });
    // Roots that nobody else reads are computed inside.
    llvm::SmallVector<HloInstruction *> dropped;
    for (unsigned one : all)
      for (HloInstruction *root : groups[one].roots)
        if (!llvm::is_contained(roots, root)) {
          dropped.push_back(root);
          groupOf[root->id()] = none;
        }
    bool made = make(std::move(roots), nullptr, move);
    for (HloInstruction *root : dropped)
      for (unsigned one : all)
        if (llvm::is_contained(groups[one].roots, root))
          groupOf[root->id()] = one;
    if (made)
      weigh(move);
    return move;
  }

  void apply(const Move &move) {
    if (move.together) {
      const unsigned first = move.groups.front();
      unsigned level = 0;
      for (unsigned one : move.groups) {
        Group &group = groups[one];
        level = std::max(level, group.level);
        for (HloInstruction *root : group.roots)
          groupOf[root->id()] = none;
        for (uint32_t old : group.operands)
          llvm::erase(readers[old], one);
        group.operands.clear();
        group.alive = one == first;
        ++group.version;
      }
      Group &group = groups[first];
      group.roots = move.made.front().roots;
      group.members = move.made.front().members;
      group.cost = move.costs.front();
      group.level = level;
      for (HloInstruction *root : group.roots)
        groupOf[root->id()] = first;
      setOperands(first);
      raiseReaders(first);
      return;
    }
    Group &producer = groups[move.groups.front()];
    producer.alive = false;
    ++producer.version;
    for (HloInstruction *root : producer.roots)
      groupOf[root->id()] = none;
    for (uint32_t old : producer.operands)
      llvm::erase(readers[old], move.groups.front());
    for (auto [reader, made, own] : llvm::zip_equal(llvm::drop_begin(move.groups), move.made, move.costs)) {
      groups[reader].members = made.members;
      groups[reader].cost = own;
      setOperands(reader);
    }
  }

  // Producers into all that read them.

  Move candidate(const HloInstruction &value) {
    const unsigned own = groupOf[value.id()];
    Move best;
    if (pinned[value.id()]) {
      best.reason = "it is needed in memory";
      return best;
    }
    llvm::SmallVector<unsigned> into(readers[value.id()].begin(), readers[value.id()].end());
    llvm::sort(into);
    if (into.size() > mostReaders) {
      best.reason = fmt::format("{} kernels read it", into.size());
      return best;
    }
    if (groups[own].roots.size() != 1 || llvm::any_of(into, [&](unsigned one) { return groups[one].fixed; })) {
      best.reason = "its kernel makes other results";
      return best;
    }
    best = duplicate(value, into);
    if (into.size() > 1) {
      llvm::SmallVector<unsigned> all{own};
      llvm::append_range(all, into);
      if (Move together = unite(all); isWorth(together) && (!isWorth(best) || together.gain > best.gain))
        best = std::move(together);
    }
    return best;
  }

  void fuseProducers() {
    std::set<std::pair<double, uint32_t>> queue; // the greatest last; ties to the newest
    std::vector<double> gains(groupOf.size(), 0);
    std::set<uint32_t> dirty;
    auto evaluate = [&](uint32_t id) {
      queue.erase({gains[id], id});
      const unsigned own = groupOf[id];
      if (own == none || groups[own].fixed || readers[id].empty())
        return;
      Move move = candidate(*at(id));
      note(id, move);
      gains[id] = isWorth(move) ? move.gain : 0;
      if (gains[id] > 0)
        queue.insert({gains[id], id});
    };
    for (const Group &group : groups)
      if (group.alive && !group.fixed)
        for (HloInstruction *root : group.roots)
          evaluate(root->id());
    while (true) {
      if (queue.empty()) {
        std::set<uint32_t> again;
        again.swap(dirty);
        for (uint32_t id : again)
          evaluate(id);
        if (queue.empty())
          return;
      }
      const uint32_t id = std::prev(queue.end())->second;
      if (dirty.erase(id)) {
        evaluate(id);
        continue;
      }
      queue.erase({gains[id], id});
      if (groupOf[id] == none) // another step took it along
        continue;
      Move move = candidate(*at(id));
      if (!isWorth(move))
        continue;
      note(id, move);
      verdicts[id].fused = true;
      apply(move);
      for (unsigned one : move.groups) {
        if (!groups[one].alive)
          continue;
        for (uint32_t operand : groups[one].operands)
          if (groupOf[operand] != none && !groups[groupOf[operand]].fixed)
            dirty.insert(operand);
        for (HloInstruction *root : groups[one].roots)
          dirty.insert(root->id());
      }
    }
  }

  // Kernels that become one with several results.

  bool mayMerge(unsigned a, unsigned b) const {
    return a != b && groups[a].alive && groups[b].alive && !groups[a].fixed && !groups[b].fixed;
  }

  bool mergeKernels() {
    struct Pair {
      double gain;
      unsigned a, b, versionA, versionB;
    };
    std::vector<Pair> pairs;
    std::set<std::pair<unsigned, unsigned>> seen;
    auto consider = [&](unsigned a, unsigned b) {
      if (!mayMerge(a, b) || !seen.insert(std::minmax(a, b)).second)
        return;
      if (Move move = unite({a, b}); isWorth(move))
        pairs.push_back({move.gain, a, b, groups[a].version, groups[b].version});
    };
    for (uint32_t id = 0; id < readers.size(); ++id) {
      llvm::SmallVector<unsigned> all(readers[id].begin(), readers[id].end());
      llvm::sort(all,
                 [&](unsigned a, unsigned b) { return std::pair(groups[a].level, a) < std::pair(groups[b].level, b); });
      if (all.size() > mostReaders)
        all.resize(mostReaders);
      const unsigned own = groupOf[id];
      if (own != none && !groups[own].fixed)
        for (unsigned reader : all)
          consider(own, reader);
      for (size_t i = 0; i + 1 < all.size(); ++i)
        consider(all[i], all[i + 1]);
    }
    // Small ones of one level wait for nothing of each other.
    std::map<std::pair<unsigned, int64_t>, unsigned> last;
    for (unsigned number = 0; number < groups.size(); ++number) {
      const Group &group = groups[number];
      if (!group.alive || group.fixed || group.cost.bytes > bytesOfSmallKernel ||
          !group.roots.back()->shape().isArray())
        continue;
      // (A loop's state is updated in place: what reads it and what replaces it are better apart.)
      const bool isTiny = computation.isEntry() && group.cost.bytes < bytesOfTinyKernel;
      auto [before, isNew] =
          last.try_emplace({group.level, isTiny ? 0 : group.roots.back()->shape().numElements()}, number);
      if (!isNew) {
        consider(before->second, number);
        before->second = number;
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) { return a.gain > b.gain; });
    bool any = false;
    for (const Pair &pair : pairs) {
      if (!mayMerge(pair.a, pair.b))
        continue;
      Move move = unite({pair.a, pair.b});
      if (!isWorth(move))
        continue;
      for (unsigned one : move.groups)
        for (HloInstruction *root : groups[one].roots)
          note(root->id(), move);
      apply(move);
      any = true;
    }
    return any;
  }

  // What was found.

  struct Verdict {
    bool fused = false;
    double seconds = 0, bytes = 0;
    std::string reason;
  };
  void note(uint32_t id, const Move &move) {
    if (decisions)
      verdicts[id] = {false, move.gain, move.bytes, move.reason};
  }

  FoundGroups result() {
    FoundGroups found;
    for (const Group &group : groups)
      if (group.alive && group.emitted) {
        found.groups.push_back({group.members, group.roots});
        found.seconds += group.cost.seconds;
      }
    llvm::sort(found.groups,
               [](const FoundGroup &a, const FoundGroup &b) { return a.roots.back()->id() < b.roots.back()->id(); });
    for (HloInstruction *instr : instructions())
      if (outside[instr->id()])
        found.renamings.push_back(instr);
    if (decisions)
      explain();
    return found;
  }

  void explain() {
    std::vector<llvm::SmallVector<unsigned, 2>> memberOf(groupOf.size());
    for (auto [number, group] : llvm::enumerate(groups))
      if (group.alive && group.emitted)
        for (HloInstruction *member : group.members)
          memberOf[member->id()].push_back(unsigned(number));
    for (HloInstruction *producer : instructions()) {
      if (!needed[producer->id()] || base[producer->id()] || producer->numOperands() == 0)
        continue;
      for (HloInstruction *user : users.of(producer)) {
        if (!needed[user->id()] || user->opcode() == Opcode::Tuple)
          continue;
        FusionDecision decision;
        decision.producer = producer->name().str();
        decision.user = user->name().str();
        const Verdict &verdict = verdicts[producer->id()];
        decision.fused = llvm::any_of(memberOf[user->id()],
                                      [&](unsigned one) { return llvm::is_contained(memberOf[producer->id()], one); });
        decision.seconds = verdict.seconds;
        decision.bytes = verdict.bytes;
        decision.reason = decision.fused          ? memberOf[producer->id()].size() > 1 ? "each reader computes it"
                                                                                        : "one kernel computes both"
                          : !isFusible(*user)     ? "`" + text(user->opcode()).str() + "` is no part of a kernel"
                          : !isFusible(*producer) ? "`" + text(producer->opcode()).str() + "` is no part of a kernel"
                                                  : verdict.reason;
        decisions->push_back(std::move(decision));
      }
    }
  }

  const HloComputation &computation;
  const std::vector<bool> &needed;
  HloUsers users;
  std::vector<FusionDecision> *decisions;
  FusionCost cost;
  std::vector<Group> groups;
  // By id.
  std::vector<unsigned> groupOf;                       ///< that makes it for others
  std::vector<llvm::SmallVector<unsigned, 2>> readers; ///< groups that read it from memory
  std::vector<bool> pinned, outside, base;
  std::vector<uint32_t> stamps;
  uint32_t stamp = 0;
  std::vector<uint32_t> visited; ///< by group
  uint32_t visit = 0;
  std::vector<Verdict> verdicts;
};

} // namespace

bool isFusible(const HloInstruction &instr) {
  if (instr.reachesSideEffect() || isStep(instr))
    return false;
  switch (family(instr.opcode())) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
    return true;
  case OpcodeFamily::Identity:
    return instr.opcode() == Opcode::Copy && instr.shape().isArray();
  case OpcodeFamily::Source:
    return instr.opcode() != Opcode::Parameter;
  case OpcodeFamily::Movement:
    return instr.shape().isArray() && instr.opcode() != Opcode::DynamicReshape;
  case OpcodeFamily::Structured:
    switch (instr.opcode()) {
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Scatter:
    case Opcode::Sort:
    case Opcode::Map:
    case Opcode::Dot:
    case Opcode::ScaledDot:
    case Opcode::RaggedDot:
    case Opcode::Convolution:
    case Opcode::SelectAndScatter:
      return true;
    default:
      return false;
    }
  default:
    return false;
  }
}

FoundGroups searchGroups(const HloComputation &computation, const std::vector<bool> &needed,
                         llvm::ArrayRef<RowGroup> rows, const TargetInfo &target,
                         std::vector<FusionDecision> *decisions) {
  // Groups of rows may be in the way of something better: where that is quickly found out, both ways are tried.
  std::vector<FusionDecision> ofRows, ofOps;
  FoundGroups found = Search(computation, needed, rows, target, decisions ? &ofRows : nullptr).run();
  bool fromOps = false;
  if (!rows.empty() && computation.instructions().size() <= mostInstructionsOfTwoSearches) {
    FoundGroups other = Search(computation, needed, {}, target, decisions ? &ofOps : nullptr).run();
    fromOps = other.seconds < found.seconds - leastGain;
    if (fromOps)
      found = std::move(other);
  }
  if (decisions)
    llvm::append_range(*decisions, fromOps ? ofOps : ofRows);
  return found;
}

} // namespace hloc
