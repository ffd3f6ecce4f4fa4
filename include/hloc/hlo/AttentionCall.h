#pragma once
// What the text of a call of cuDNN's attention says, as jax.nn.dot_product_attention(implementation="cudnn") prints it:
//
//   __cudnn$fmha[ScaleBias]Softmax            (o[, statistics], scratch)     of q, k, v[, bias][, lengths]
//   __cudnn$fmha[ScaleBias]SoftmaxBackward    (dq, dk, dv[, dbias], scratch) of q, k, v, statistics, do[, bias], o[,
//   lengths]
//
// With `Dropout` in their names, too, if its rate is 0. q is [b, t, n, h] or, heads first, [b, n, t, h]; o, dq, dk and
// dv as results are heads first. Statistics are the logarithms of the sums of exponentials, f32[b, n, t].

#include "hloc/hlo/HloInstruction.h"

#include <optional>
#include <string>

namespace hloc {

struct AttentionCall {
  bool isGradient = false;
  double scale = 1; ///< of scores, before a bias is added
  bool isCausal = false;
  bool areHeadsFirst = false;
  int64_t window = 0; ///< keys that a query sees at most, its own the last; 0: as many as there are
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  int64_t keyHeads = 0; ///< each is that of neighbouring heads of queries
  int64_t size = 0, valueSize = 0;
  /// Operands: [b or 1, n or 1, t, s]; of queries and of keys, s32[b], of which the others are padding.
  std::optional<unsigned> bias, queryLengths, keyLengths;
  bool hasStatistics = false, hasBiasGradient = false; ///< results

  /// Operands of a gradient.
  static constexpr unsigned statistics = 3, outputGradient = 4;
  unsigned output() const { return bias ? 6 : 5; }
  int64_t grouped() const { return heads / keyHeads; }

  /// nullopt: the target is none of these, and `why` stays as it was, or the call does not fit it, and `why` says what
  /// is wrong.
  static std::optional<AttentionCall> of(const HloInstruction &call, std::string &why);
};

} // namespace hloc
