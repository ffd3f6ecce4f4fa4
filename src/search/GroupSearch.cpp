#include "search/GroupSearch.h"

#include "hloc/search/FusionPolicy.h"
#include "search/GroupGraph.h"
#include "search/OpcodeRoles.h"
#include "search/PlanQuery.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace hloc {
namespace {

/// Less is not worth a larger kernel: the model is not so exact.
constexpr double leastGain = 0.02e-6;
/// A value that more kernels read stays in memory.
constexpr size_t mostReaders = 24;
/// Contractions of one value that are tried in pairs, wherever others stand between them.
constexpr size_t mostContractions = 8;
/// Kernels that move more are not merged just because they are independent.
constexpr double bytesOfSmallKernel = 1 << 20, bytesOfTinyKernel = 1 << 18;
constexpr size_t mostInstructionsOfSeveralSearches = 2000;

/// Has it to be stored by its hero?
bool needsHero(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Sort || instr.opcode() == Opcode::Scatter;
}

/// A step: what becomes of which groups.
struct Move {
  double gain = 0;
  bool together = false;                 ///< one group of all; otherwise each reader computes it
  llvm::SmallVector<unsigned> groups;    ///< the producer's first
  llvm::SmallVector<GroupContents> made; ///< of the readers, or the one
  double bytes = 0;                      ///< saved
  std::string reason;                    ///< why there is none, or why it does not pay
};

class Search {
public:
  Search(const HloComputation &computation, const llvm::BitVector &needed, llvm::ArrayRef<RowGroup> rows,
         FusionCost &cost, std::vector<FusionDecision> *decisions, llvm::ArrayRef<AskedEdge> edges)
      : graph(computation, needed, rows, edges), decisions(decisions), cost(cost), edges(edges), refusals(edges.size()),
        verdicts(computation.instructions().size()) {
    for (unsigned number = 0; number < graph.numGroups(); ++number) // in the order of the computation, but for rows
      if (const Group &group = graph[number]; !group.fixed)
        graph.setCost(number, cost.of(group.members, group.roots));
  }

  FoundGroups run() {
    for (auto [edge, refusal] : llvm::zip_equal(edges, refusals))
      if (edge.fused)
        refusal = fuse(edge);
    fuseProducers();
    while (mergeKernels())
      ;
    fuseProducers();
    return result();
  }

private:
  // Steps.

  /// A kernel of `roots` in place of others, or the reason why there is none.
  bool make(llvm::SmallVector<HloInstruction *> roots, llvm::ArrayRef<const HloInstruction *> inside, Move &move) {
    GroupContents &made = move.made.emplace_back();
    made.roots = std::move(roots);
    made.members = graph.closure(made.roots, inside);
    KernelCost &own = made.cost = cost.of(made.members, made.roots);
    for (const HloInstruction *member : made.members)
      if ((needsHero(*member) || graph.updatesState(*member)) && own.hero != roleOf(member->opcode()).own)
        own.impossible = fmt::format("`{}` has to be stored by its own kernel", member->name().str());
    for (const AskedEdge &edge : edges)
      if (!edge.fused && has(made.members, edge))
        own.impossible =
            fmt::format("`{}` and `{}` are to be apart", edge.producer->name().str(), edge.user->name().str());
    move.reason = own.impossible;
    return own.impossible.empty();
  }

  void weigh(Move &move) const {
    double before = 0, after = 0, bytes = 0, workBefore = 0, work = 0;
    for (unsigned one : move.groups) {
      before += graph[one].cost.seconds;
      bytes += graph[one].cost.bytes;
      workBefore += graph[one].cost.work;
    }
    for (const GroupContents &made : move.made) {
      after += made.cost.seconds;
      bytes -= made.cost.bytes;
      work += made.cost.work;
    }
    move.gain = before - after;
    move.bytes = bytes;
    if (move.gain < leastGain)
      move.reason = work > 1.5 * workBefore ? fmt::format("it would be computed again: {:.1f} times the work",
                                                          work / std::max(1.0, workBefore))
                    : move.made.size() == 1 && move.made.front().cost.hero == Hero::Loop && decides(move.made.front())
                        ? "one kernel of all would leave each thread a loop of its own"
                        : "nothing is saved";
  }

  static bool decides(const GroupContents &group) {
    return llvm::any_of(group.members, [](const HloInstruction *instr) { return decidesHero(*instr); });
  }

  bool isWorth(const Move &move) const { return move.reason.empty() && move.gain >= leastGain; }

  Move duplicate(const HloInstruction &value, llvm::ArrayRef<unsigned> into) {
    Move move;
    move.groups.push_back(graph.groupOf(value.id()));
    llvm::append_range(move.groups, into);
    for (unsigned reader : into)
      if (!make(graph[reader].roots, &value, move))
        return move;
    weigh(move);
    return move;
  }

  /// All of them one kernel.
  Move unite(llvm::ArrayRef<unsigned> all) {
    Move move;
    move.together = true;
    move.groups.assign(all.begin(), all.end());
    if (graph.waitForEachOther(all)) {
      move.reason = "other kernels stand between";
      return move;
    }
    llvm::SmallVector<HloInstruction *> roots;
    for (unsigned one : all)
      for (HloInstruction *root : graph[one].roots)
        if (graph.isPinned(*root) || llvm::any_of(graph.readersOf(root->id()),
                                                  [&](unsigned reader) { return !llvm::is_contained(all, reader); }))
          roots.push_back(root);
    if (llvm::any_of(roots, [](auto *root) { return root->shape().isTuple(); }) && roots.size() > 1) {
      move.reason = "a tuple is a kernel's only result";
      return move;
    }
    if (graph.replacesWhatIsReadLater(all, roots)) {
      move.reason = "a loop's state would be replaced before it is read";
      return move;
    }
    llvm::sort(roots, [](auto *a, auto *b) { return a->id() < b->id(); });
    // Roots that nobody else reads are computed inside.
    llvm::SmallVector<const HloInstruction *> dropped;
    for (unsigned one : all)
      llvm::copy_if(graph[one].roots, std::back_inserter(dropped),
                    [&](HloInstruction *root) { return !llvm::is_contained(roots, root); });
    if (make(std::move(roots), dropped, move))
      weigh(move);
    return move;
  }

  void apply(const Move &move) {
    if (move.together)
      graph.unite(move.groups, move.made.front());
    else
      graph.dissolve(move.groups.front(), llvm::ArrayRef(move.groups).drop_front(), move.made);
  }

  // Edges that are asked for.

  static bool has(llvm::ArrayRef<HloInstruction *> members, const AskedEdge &edge) {
    return llvm::is_contained(members, edge.producer) && llvm::is_contained(members, edge.user);
  }

  /// Is it a step, whatever it costs?
  static bool isPossible(const Move &move) {
    return !move.made.empty() &&
           llvm::all_of(move.made, [](const GroupContents &made) { return made.cost.impossible.empty(); });
  }

  /// Makes one kernel of both, or as many as read the producer. Why not; empty: done.
  std::string fuse(const AskedEdge &edge) {
    const HloInstruction &value = *edge.producer;
    const unsigned own = graph.groupOf(value.id());
    if (own == GroupGraph::none) // whoever reads it computes it
      return "";
    llvm::SmallVector<unsigned> all(graph.readersOf(value.id()).begin(), graph.readersOf(value.id()).end());
    llvm::sort(all);
    llvm::SmallVector<unsigned> both{own};
    llvm::copy_if(all, std::back_inserter(both),
                  [&](unsigned one) { return llvm::is_contained(graph[one].members, edge.user); });
    if (both.size() == 1)
      return llvm::is_contained(graph[own].members, edge.user)
                 ? ""
                 : fmt::format("`{}` is no part of a kernel", edge.user->name().str());
    if (llvm::any_of(both, [&](unsigned one) { return graph[one].fixed; }))
      return fmt::format("`{}` is no part of a kernel", (graph[own].fixed ? edge.producer : edge.user)->name().str());
    std::vector<Move> moves = {unite(both)};
    if (llvm::none_of(all, [&](unsigned one) { return graph[one].fixed; })) {
      if (!graph.isPinned(value) && graph[own].roots.size() == 1)
        moves.push_back(duplicate(value, all));
      all.insert(all.begin(), own);
      moves.push_back(unite(all));
    }
    const Move *best = nullptr;
    for (const Move &move : moves)
      if (isPossible(move) && (!best || move.gain > best->gain))
        best = &move;
    if (!best)
      return moves.front().reason;
    note(value.id(), *best);
    verdicts[value.id()].fused = true;
    apply(*best);
    return "";
  }

  /// Of what was found, why edges are not as asked for.
  void checkEdges(llvm::ArrayRef<FoundGroup> groups) {
    for (auto [edge, refusal] : llvm::zip_equal(edges, refusals)) {
      const bool together = llvm::any_of(groups, [&](const FoundGroup &group) { return has(group.members, edge); });
      if (!edge.fused && together)
        refusal = fmt::format("`{}` is computed wherever it is read", edge.producer->name().str());
      if (edge.fused && !together && refusal.empty())
        refusal = "one of them is no part of a kernel";
    }
  }

  // Producers into all that read them.

  Move candidate(const HloInstruction &value) {
    const unsigned own = graph.groupOf(value.id());
    Move best;
    if (graph.isPinned(value)) {
      best.reason = "it is needed in memory";
      return best;
    }
    llvm::SmallVector<unsigned> into(graph.readersOf(value.id()).begin(), graph.readersOf(value.id()).end());
    llvm::sort(into);
    if (into.size() > mostReaders) {
      best.reason = fmt::format("{} kernels read it", into.size());
      return best;
    }
    if (graph[own].roots.size() != 1 || llvm::any_of(into, [&](unsigned one) { return graph[one].fixed; })) {
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
    std::vector<double> gains(graph.instructions().size(), 0);
    std::set<uint32_t> dirty;
    auto evaluate = [&](uint32_t id) {
      queue.erase({gains[id], id});
      const unsigned own = graph.groupOf(id);
      if (own == GroupGraph::none || graph[own].fixed || graph.readersOf(id).empty())
        return;
      Move move = candidate(*graph.instructions()[id]);
      note(id, move);
      gains[id] = isWorth(move) ? move.gain : 0;
      if (gains[id] > 0)
        queue.insert({gains[id], id});
    };
    for (const Group &group : graph.all())
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
      if (graph.groupOf(id) == GroupGraph::none) // another step took it along
        continue;
      Move move = candidate(*graph.instructions()[id]);
      if (!isWorth(move))
        continue;
      note(id, move);
      verdicts[id].fused = true;
      apply(move);
      for (unsigned one : move.groups) {
        if (!graph[one].alive)
          continue;
        for (uint32_t operand : graph[one].operands)
          if (graph.groupOf(operand) != GroupGraph::none && !graph[graph.groupOf(operand)].fixed)
            dirty.insert(operand);
        for (HloInstruction *root : graph[one].roots)
          dirty.insert(root->id());
      }
    }
  }

  // Kernels that become one with several results.

  bool mayMerge(unsigned a, unsigned b) const {
    return a != b && graph[a].alive && graph[b].alive && !graph[a].fixed && !graph[b].fixed;
  }

  bool mergeKernels() {
    struct Pair {
      double gain;
      unsigned a, b;
    };
    std::vector<Pair> pairs;
    std::set<std::pair<unsigned, unsigned>> seen;
    auto consider = [&](unsigned a, unsigned b) {
      if (!mayMerge(a, b) || !seen.insert(std::minmax(a, b)).second)
        return;
      if (Move move = unite({a, b}); isWorth(move))
        pairs.push_back({move.gain, a, b});
    };
    for (uint32_t id = 0; id < verdicts.size(); ++id) {
      llvm::SmallVector<unsigned> all(graph.readersOf(id).begin(), graph.readersOf(id).end());
      llvm::sort(all,
                 [&](unsigned a, unsigned b) { return std::pair(graph[a].level, a) < std::pair(graph[b].level, b); });
      if (all.size() > mostReaders)
        all.resize(mostReaders);
      const unsigned own = graph.groupOf(id);
      if (own != GroupGraph::none && !graph[own].fixed)
        for (unsigned reader : all)
          consider(own, reader);
      for (size_t i = 0; i + 1 < all.size(); ++i)
        consider(all[i], all[i + 1]);
      llvm::erase_if(all, [&](unsigned reader) { return graph[reader].cost.hero != Hero::Contraction; });
      for (size_t i = 0; i < std::min(all.size(), mostContractions); ++i)
        for (size_t j = 0; j < i; ++j)
          consider(all[j], all[i]);
    }
    // Small ones of one level wait for nothing of each other.
    std::map<std::pair<unsigned, int64_t>, unsigned> last;
    for (unsigned number = 0; number < graph.numGroups(); ++number) {
      const Group &group = graph[number];
      if (!group.alive || group.fixed || group.cost.bytes > bytesOfSmallKernel ||
          !group.roots.back()->shape().isArray())
        continue;
      // (A loop's state is updated in place: what reads it and what replaces it are better apart.)
      const bool isTiny = graph.isEntry() && group.cost.bytes < bytesOfTinyKernel;
      auto [before, isNew] =
          last.try_emplace({group.level, isTiny ? 0 : group.roots.back()->shape().numElements()}, number);
      if (!isNew) {
        consider(before->second, number);
        before->second = number;
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) { return a.gain > b.gain; });
    bool any = false;
    std::vector<unsigned> mergedInto(graph.numGroups());
    std::iota(mergedInto.begin(), mergedInto.end(), 0u);
    auto now = [&](unsigned group) {
      while (mergedInto[group] != group)
        group = mergedInto[group];
      return group;
    };
    for (const Pair &pair : pairs) {
      const unsigned a = now(pair.a), b = now(pair.b);
      if (!mayMerge(a, b))
        continue;
      Move move = unite({a, b});
      if (!isWorth(move))
        continue;
      for (unsigned one : move.groups)
        for (HloInstruction *root : graph[one].roots)
          note(root->id(), move);
      apply(move);
      mergedInto[b] = a;
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
    for (const Group &group : graph.all())
      if (group.alive && group.emitted) {
        found.groups.push_back({group.members, group.roots, group.cost});
        found.seconds += group.cost.seconds;
      }
    llvm::sort(found.groups,
               [](const FoundGroup &a, const FoundGroup &b) { return a.roots.back()->id() < b.roots.back()->id(); });
    checkEdges(found.groups);
    found.refusals = std::move(refusals);
    for (HloInstruction *instr : graph.instructions())
      if (graph.isOutside(*instr))
        found.renamings.push_back(instr);
    if (decisions)
      explain();
    return found;
  }

  void explain() {
    std::vector<llvm::SmallVector<unsigned, 2>> memberOf(verdicts.size());
    for (auto [number, group] : llvm::enumerate(graph.all()))
      if (group.alive && group.emitted)
        for (HloInstruction *member : group.members)
          memberOf[member->id()].push_back(unsigned(number));
    for (HloInstruction *producer : graph.instructions()) {
      if (!graph.isNeeded(*producer) || graph.isGiven(*producer) || producer->numOperands() == 0)
        continue;
      for (HloInstruction *user : graph.usersOf(*producer)) {
        if (!graph.isNeeded(*user) || user->opcode() == Opcode::Tuple)
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

  GroupGraph graph;
  std::vector<FusionDecision> *decisions;
  FusionCost &cost;
  llvm::ArrayRef<AskedEdge> edges;
  std::vector<std::string> refusals; ///< by edge
  std::vector<Verdict> verdicts;     ///< by id
};

/// The groups that have no two that are to be apart.
std::vector<RowGroup> without(llvm::ArrayRef<AskedEdge> edges, llvm::ArrayRef<RowGroup> rows) {
  std::vector<RowGroup> left(rows.begin(), rows.end());
  llvm::erase_if(left, [&](const RowGroup &group) {
    auto has = [&](const HloInstruction *instr) {
      return llvm::is_contained(group.reductions, instr) || llvm::is_contained(group.roots, instr) ||
             llvm::is_contained(group.inside, instr);
    };
    return llvm::any_of(edges,
                        [&](const AskedEdge &edge) { return !edge.fused && has(edge.producer) && has(edge.user); });
  });
  return left;
}

} // namespace

FoundGroups searchGroups(const HloComputation &computation, const llvm::BitVector &needed,
                         llvm::ArrayRef<std::vector<RowGroup>> seeds, const TargetInfo &target,
                         std::vector<FusionDecision> *decisions, llvm::ArrayRef<AskedEdge> edges) {
  // All searches ask for the same kernels, mostly.
  const HloUsers users(computation);
  FusionCost cost(computation, target,
                  [&](const HloInstruction &instr) { return mayUpdate(instr, computation, users); });
  std::optional<FoundGroups> best;
  std::vector<FusionDecision> ofBest;
  auto search = [&](llvm::ArrayRef<RowGroup> rows) {
    std::vector<FusionDecision> own;
    FoundGroups found =
        Search(computation, needed, without(edges, rows), cost, decisions ? &own : nullptr, edges).run();
    auto numRefused = [](const FoundGroups &groups) {
      return llvm::count_if(groups.refusals, [](const std::string &why) { return !why.empty(); });
    };
    const auto more = best ? numRefused(found) - numRefused(*best) : -1;
    if (more > 0 || (more == 0 && found.seconds >= best->seconds - leastGain))
      return;
    best = std::move(found);
    ofBest = std::move(own);
  };
  // Groups may be in the way of something better: where that is quickly found out, it is tried without any.
  const bool isSmall = computation.instructions().size() <= mostInstructionsOfSeveralSearches;
  for (llvm::ArrayRef<RowGroup> groups : isSmall ? seeds : seeds.take_back())
    search(groups);
  if (isSmall && llvm::any_of(seeds, [](const auto &groups) { return !groups.empty(); }))
    search({});
  if (decisions)
    llvm::append_range(*decisions, ofBest);
  return std::move(*best);
}

} // namespace hloc
