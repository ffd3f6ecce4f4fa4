#include "hloc/kernel/Proofs.h"

#include "hloc/support/Check.h"

namespace hloc {

const char *text(ProofProperty property) {
  switch (property) {
  case ProofProperty::WrittenOnce:
    return "written-once";
  case ProofProperty::InBounds:
    return "in-bounds";
  case ProofProperty::Ordered:
    return "ordered";
  case ProofProperty::FitsWidth:
    return "fits-width";
  case ProofProperty::BarriersReached:
    return "barriers-reached";
  }
  HLOC_UNREACHABLE("unknown property");
}

const char *text(ProofVerdict verdict) {
  switch (verdict) {
  case ProofVerdict::Unknown:
    return "unknown";
  case ProofVerdict::Proved:
    return "proved";
  case ProofVerdict::Refuted:
    return "refuted";
  }
  HLOC_UNREACHABLE("unknown verdict");
}

std::string ProofWitness::toString() const {
  std::string result;
  for (const Place &place : places)
    result += (result.empty() ? "" : " and ") + ("block " + std::to_string(place.block)) + ", thread " +
              std::to_string(place.thread);
  if (element)
    result += (result.empty() ? "" : ", ") + ("element " + std::to_string(*element)) + " of `" + buffer + "`";
  return result;
}

} // namespace hloc
