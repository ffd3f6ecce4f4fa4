// Temporaries that share memory: lifetimes in trees of steps, and that what lives at one time lies apart.
#include "planner/BufferAssignment.h"

#include "PlanText.h"

#include <chrono>
#include <random>

using namespace hloc;
using namespace hloc::test;

namespace {

BufferSlice slice(uint32_t buffer) { return {buffer, 0, 64}; }
Step copy(uint32_t from, uint32_t to) { return {"c", CopyStep{slice(from), slice(to)}}; }
Step fill(uint32_t to) { return {"f", FillStep{slice(to), 0}}; }
Step loop(Steps condition, uint32_t predicate, Steps body) {
  return {"w", WhileStep{std::move(condition), slice(predicate), std::move(body)}};
}
Step choice(uint32_t selector, std::vector<Steps> branches) {
  return {"k", ConditionalStep{slice(selector), std::move(branches)}};
}

bool definesNothing(const LaunchStep &, size_t) { return false; }

/// `begin-end` by buffer.
std::string lifetimes(const Steps &steps, size_t numBuffers) {
  std::string text;
  for (const std::optional<Lifetime> &one : findLifetimes(steps, numBuffers, definesNothing))
    text += (text.empty() ? "" : " ") + (one ? std::to_string(one->begin) + "-" + std::to_string(one->end) : "none");
  return text;
}

} // namespace

TEST_CASE("a buffer lives from the first step that names it to the last") {
  CHECK(lifetimes({copy(0, 1), copy(1, 2), copy(2, 3)}, 5) == "0-0 0-1 1-2 2-2 none");
}

TEST_CASE("what is made and used up within a round lives in it; all else as long as the loop") {
  // 0: state from outside; 1: the predicate; 2: made and used in the body; 3: read before it is written; 4: read behind
  // the loop; 5: made in front of it, read in the body.
  Steps steps = {fill(0), fill(5), loop({copy(0, 1)}, 1, {copy(0, 2), copy(2, 4), copy(3, 0), copy(5, 3)}), copy(4, 6)};
  CHECK(lifetimes(steps, 7) == "0-7 2-3 4-5 2-7 2-8 1-7 8-8");
}

TEST_CASE("of a loop in a loop, what goes round the inner one lives as long as that, and no longer") {
  // 2 is made in a round of the outer loop and read in the inner; 3 goes round the inner alone; 4 round the outer.
  Steps steps = {fill(0), loop({fill(1)}, 1,
                               {fill(2), fill(3), loop({fill(5)}, 5, {copy(2, 6), copy(6, 3)}), copy(3, 7), copy(4, 7),
                                copy(7, 4)})};
  CHECK(lifetimes(steps, 8) == "0-0 1-2 3-8 4-9 1-11 5-6 7-8 9-11");
}

TEST_CASE("results of branches live from the first branch on; what branches use themselves may lie in one place") {
  Steps steps = {fill(0), choice(0, {{fill(1), copy(1, 3)}, {fill(2), copy(2, 3)}}), copy(3, 4)};
  CHECK(lifetimes(steps, 5) == "0-1 2-3 4-5 3-6 6-6");
}

TEST_CASE("a step that reads and writes a buffer does not define it") {
  Steps steps = {loop({fill(1)}, 1, {{"x", CallStep{CallStep::Kind::External, "f", "", {slice(0)}, {slice(0)}}}})};
  CHECK(lifetimes(steps, 2) == "0-2 0-1");
  CHECK(lifetimes({loop({fill(1)}, 1, {{"x", CallStep{CallStep::Kind::External, "f", "", {}, {slice(0)}}}})}, 2) ==
        "2-2 0-1");
}

TEST_CASE("intervals are packed without overlap, and no worse than they have to") {
  CHECK(packIntervals({}).bytes == 0);
  Packing chain = packIntervals({{1000, {0, 1}}, {1024, {1, 2}}, {512, {2, 3}}});
  CHECK(chain.bytes == 2048);
  // The small one goes into the least gap.
  Packing gap = packIntervals({{4096, {0, 9}}, {2048, {0, 4}}, {1024, {5, 9}}, {256, {0, 9}}, {768, {5, 6}}});
  CHECK(gap.bytes <= 4096 + 2048 + 256);
  std::mt19937 random(1);
  for (unsigned round = 0; round < 300; ++round) {
    std::vector<BufferInterval> intervals(random() % 40);
    for (BufferInterval &one : intervals) {
      const uint32_t begin = random() % 30;
      one = {random() % 5000 + 1, {begin, begin + uint32_t(random() % 8)}};
    }
    Packing packing = packIntervals(intervals);
    REQUIRE(packing.offsets.size() == intervals.size());
    uint64_t highest = 0, most = 0, all = 0;
    for (size_t i = 0; i < intervals.size(); ++i) {
      const uint64_t begin = packing.offsets[i], end = begin + intervals[i].bytes;
      CHECK(begin % bufferPlacement == 0);
      highest = std::max(highest, end);
      all += (intervals[i].bytes + 255) / 256 * 256;
      for (size_t j = 0; j < i; ++j)
        if (intervals[i].lifetime.overlaps(intervals[j].lifetime))
          REQUIRE((end <= packing.offsets[j] || packing.offsets[j] + intervals[j].bytes <= begin));
    }
    for (uint32_t step = 0; step < 40; ++step) {
      uint64_t live = 0;
      for (const BufferInterval &one : intervals)
        live += one.lifetime.begin <= step && step <= one.lifetime.end ? (one.bytes + 255) / 256 * 256 : 0;
      most = std::max(most, live);
    }
    CHECK(highest <= packing.bytes);
    CHECK(most <= packing.bytes);
    CHECK(packing.bytes <= all);
  }
}

TEST_CASE("many intervals are packed in a short time") {
  std::mt19937 random(2);
  std::vector<BufferInterval> intervals(20000);
  for (auto [i, one] : llvm::enumerate(intervals))
    one = {random() % 100000 + 1, {uint32_t(i), uint32_t(i + random() % 10)}};
  const auto begin = std::chrono::steady_clock::now();
  CHECK(packIntervals(intervals).bytes < 4000000);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

namespace {

/// Runs random trees of steps as a machine with the packed memory would, and checks that each step finds what the last
/// writer of a buffer has left there.
class Simulation {
public:
  explicit Simulation(unsigned seed) : random(seed) {}

  void run() {
    Steps steps = {fill(0), fill(1)};
    std::vector<uint32_t> known = {0, 1};
    make(steps, known, 3);
    std::vector<std::optional<Lifetime>> found = findLifetimes(steps, numBuffers, definesNothing);
    std::vector<BufferInterval> intervals;
    for (uint32_t i = 0; i < numBuffers; ++i)
      intervals.push_back({64 + 300 * (i % 7), found[i].value_or(Lifetime())});
    Packing packing = packIntervals(intervals);
    for (uint32_t i = 0; i < numBuffers; ++i)
      places.push_back({packing.offsets[i], packing.offsets[i] + intervals[i].bytes});
    // Buffers that no step names have no place, and nobody asks for it.
    valid.resize(numBuffers);
    execute(steps);
  }

private:
  /// Each step reads what has been written for certain, and writes something new or something known again.
  void make(Steps &steps, std::vector<uint32_t> &known, unsigned depth) {
    for (unsigned count = random() % 6 + 1; count--;) {
      const uint32_t source = known[random() % known.size()];
      const unsigned kind = depth ? random() % 6 : 0;
      if (kind == 4) {
        Steps condition, body;
        std::vector<uint32_t> inside = known;
        condition.push_back(copy(source, numBuffers));
        const uint32_t predicate = numBuffers++;
        make(body, inside, depth - 1);
        steps.push_back(loop(std::move(condition), predicate, std::move(body)));
      } else if (kind == 5) {
        std::vector<Steps> branches(2);
        const uint32_t result = numBuffers++;
        for (Steps &branch : branches) {
          std::vector<uint32_t> inside = known;
          make(branch, inside, depth - 1);
          branch.push_back(copy(inside[random() % inside.size()], result));
        }
        steps.push_back(choice(source, std::move(branches)));
        known.push_back(result);
      } else {
        uint32_t target = random() % 3 ? numBuffers++ : known[random() % known.size()];
        if (target == source)
          target = numBuffers++;
        steps.push_back(copy(source, target));
        known.push_back(target);
      }
    }
  }

  void read(uint32_t buffer) {
    INFO("buffer " << buffer);
    REQUIRE(valid[buffer]);
  }
  void write(uint32_t buffer) {
    for (uint32_t other = 0; other < numBuffers; ++other)
      if (places[other].first < places[buffer].second && places[buffer].first < places[other].second)
        valid[other] = false;
    valid[buffer] = true;
  }
  void execute(const Steps &steps) {
    for (const Step &step : steps)
      if (const auto *one = std::get_if<CopyStep>(&step.action)) {
        read(one->from.buffer);
        write(one->to.buffer);
        read(one->to.buffer);
      } else if (const auto *one = std::get_if<FillStep>(&step.action)) {
        write(one->to.buffer);
      } else if (const auto *one = std::get_if<WhileStep>(&step.action)) {
        for (unsigned round = 0; round < 3; ++round) {
          execute(one->condition);
          read(one->predicate.buffer);
          if (round < 2)
            execute(one->body);
        }
      } else if (const auto *one = std::get_if<ConditionalStep>(&step.action)) {
        read(one->selector.buffer);
        execute(one->branches[random() % one->branches.size()]);
      }
  }

  std::mt19937 random;
  uint32_t numBuffers = 2;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  std::vector<bool> valid;
};

} // namespace

TEST_CASE("steps find what was left for them, in any tree") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    Simulation(seed).run();
  }
}

TEST_CASE("temporaries of a plan share memory; results and parameters do not") {
  Planned p =
      planModuleText("HloModule m\nn { p = f32[256] parameter(0)\n ROOT r = f32[256] negate(p) }\n"
                     "ENTRY e { x = f32[256] parameter(0)\n a = f32[256] fusion(x), kind=kLoop, calls=n\n"
                     "b = f32[256] fusion(a), kind=kLoop, calls=n\n c = f32[256] fusion(b), kind=kLoop, calls=n\n"
                     "ROOT d = f32[256] fusion(c), kind=kLoop, calls=n }\n");
  CHECK(p.steps == "n(0,1) n(1,2) n(2,3) n(3,4)");
  CHECK(temporaryBytes(p.plan->buffers) == 2048);
  CHECK(sharedTemporaryBytes(p.plan->buffers) == 2048);
  CHECK_FALSE(p.plan->buffers[0].offset);
  CHECK(p.plan->buffers[1].offset == p.plan->buffers[3].offset);
  CHECK(p.plan->buffers[1].offset != p.plan->buffers[2].offset);
  CHECK_FALSE(p.plan->buffers[4].offset);
}
