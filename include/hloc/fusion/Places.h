#pragma once
// Places: at which place of some origins instructions have what they depend on, followed forward from these. Whoever
// asks whether all that is made of a value has it at its own index, at its own position of the memory, in its own row
// or of one slice asks here, and says what a place is, and at which one an instruction has what its operand has at
// another.
//
//   e = exponential(x), s = add(x, e):   x at their own index
//   t = transpose(e), r = add(e, t):     r has x at two places: elsewhere
//
// ReadMaps.h follows reads backward, with all that is known of the indices.

#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/HloComputation.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <variant>
#include <vector>

namespace hloc {

/// What an instruction is that depends on no origin, or on nothing of it that matters.
struct Independent {
  bool operator==(const Independent &) const = default;
};
/// And one that has some of an origin at two places, or at none that is asked about.
struct Elsewhere {
  bool operator==(const Elsewhere &) const = default;
};
template <typename Place> using PlaceAnswer = std::variant<Independent, Place, Elsewhere>;
template <typename Place> PlaceAnswer<Place> placeIf(bool isThere, Place place) {
  return isThere ? PlaceAnswer<Place>(std::move(place)) : Elsewhere();
}

/// The place if there is but one: the own.
struct Own {
  bool operator==(const Own &) const = default;
};

template <typename Place> class Places {
public:
  using Answer = PlaceAnswer<Place>;
  /// What an instruction is if its operand of that number is at that place.
  using Through = llvm::function_ref<Answer(const HloInstruction &instr, unsigned operand, const Place &read)>;

  explicit Places(const HloComputation &computation) : answers(computation.instructions().size()) {}

  void set(const HloInstruction &origin, Place place) { answers[origin.id()] = std::move(place); }

  /// `instructions`: operands before users. What is elsewhere is not followed further. What is taken of a tuple that is
  /// built in the computation is read where it is made; the tuple has no place.
  void follow(llvm::ArrayRef<const HloInstruction *> instructions, Through through) {
    for (const HloInstruction *instr : instructions) {
      if (instr->opcode() == Opcode::Tuple || &behindTuple(*instr) != instr)
        continue;
      Answer &own = answers[instr->id()];
      for (unsigned i = 0; i < instr->numOperands(); ++i)
        if (const Place *read = at(*instr->operand(i)))
          own = join(own, through(*instr, i, *read));
      if (!first && std::holds_alternative<Elsewhere>(own))
        first = instr;
    }
  }

  /// Null: of what is independent or elsewhere.
  const Place *at(const HloInstruction &instr) const { return std::get_if<Place>(&answers[behindTuple(instr).id()]); }
  bool isAt(const HloInstruction &instr, const Place &place) const {
    const Place *own = at(instr);
    return own && *own == place;
  }
  /// Null: none is.
  const HloInstruction *firstElsewhere() const { return first; }

private:
  static Answer join(const Answer &a, const Answer &b) {
    return b == Answer() || a == b ? a : a == Answer() ? b : Answer(Elsewhere());
  }

  std::vector<Answer> answers; ///< by id
  const HloInstruction *first = nullptr;
};

} // namespace hloc
