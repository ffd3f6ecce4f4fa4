#pragma once
// A real number of 256 bits (MPFR) with the functions the references are written in, so that one text serves doubles,
// which are quick, and these, which are right. Its exponents do not overflow where those of floats do.

#include <cmath>
#include <cstdint>

#include <mpfr.h>

namespace hloc::accuracy {

class Real {
public:
  Real() { mpfr_init2(value, precision); }
  Real(double other) : Real() { mpfr_set_d(value, other, MPFR_RNDN); }
  Real(const Real &other) : Real() { mpfr_set(value, other.value, MPFR_RNDN); }
  Real &operator=(const Real &other) {
    mpfr_set(value, other.value, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(value); }
  static Real ofSigned(int64_t other) {
    Real result;
    mpfr_set_si(result.value, other, MPFR_RNDN);
    return result;
  }
  static Real ofUnsigned(uint64_t other) {
    Real result;
    mpfr_set_ui(result.value, other, MPFR_RNDN);
    return result;
  }
  static Real pi() {
    Real result;
    mpfr_const_pi(result.value, MPFR_RNDN);
    return result;
  }

  double toDouble() const { return mpfr_get_d(value, MPFR_RNDN); }
  bool isNan() const { return mpfr_nan_p(value) != 0; }
  bool isInfinite() const { return mpfr_inf_p(value) != 0; }
  bool isZero() const { return mpfr_zero_p(value) != 0; }
  bool isNegative() const { return mpfr_signbit(value) != 0; }
  /// floor(log2(|x|)) of a number that is neither zero nor infinite.
  int64_t exponent() const { return int64_t(mpfr_get_exp(value)) - 1; }

  mpfr_t value;

private:
  static constexpr mpfr_prec_t precision = 256;
};

inline int compare(const Real &a, const Real &b) { return mpfr_cmp(a.value, b.value); }
inline bool operator<(const Real &a, const Real &b) { return mpfr_less_p(a.value, b.value) != 0; }
inline bool operator==(const Real &a, const Real &b) { return mpfr_equal_p(a.value, b.value) != 0; }
inline bool isNan(const Real &x) { return x.isNan(); }
inline bool isNan(double x) { return std::isnan(x); }
inline Real scaled(const Real &x, int64_t exponent) {
  Real result;
  mpfr_mul_2si(result.value, x.value, long(exponent), MPFR_RNDN);
  return result;
}
inline Real operator-(const Real &x) {
  Real result;
  mpfr_neg(result.value, x.value, MPFR_RNDN);
  return result;
}

#define HLOC_REAL_BINARY(name, function)                                                                               \
  inline Real name(const Real &x, const Real &y) {                                                                     \
    Real result;                                                                                                       \
    function(result.value, x.value, y.value, MPFR_RNDN);                                                               \
    return result;                                                                                                     \
  }
HLOC_REAL_BINARY(operator+, mpfr_add)
HLOC_REAL_BINARY(operator-, mpfr_sub)
HLOC_REAL_BINARY(operator*, mpfr_mul)
HLOC_REAL_BINARY(operator/, mpfr_div)
using std::atan2, std::fmod, std::hypot, std::pow;
HLOC_REAL_BINARY(fmod, mpfr_fmod)
HLOC_REAL_BINARY(pow, mpfr_pow)
HLOC_REAL_BINARY(atan2, mpfr_atan2)
HLOC_REAL_BINARY(hypot, mpfr_hypot)
#undef HLOC_REAL_BINARY

#define HLOC_REAL_UNARY(name, function)                                                                                \
  using std::name;                                                                                                     \
  inline Real name(const Real &x) {                                                                                    \
    Real result;                                                                                                       \
    function(result.value, x.value, MPFR_RNDN);                                                                        \
    return result;                                                                                                     \
  }
HLOC_REAL_UNARY(fabs, mpfr_abs)
HLOC_REAL_UNARY(acos, mpfr_acos)
HLOC_REAL_UNARY(acosh, mpfr_acosh)
HLOC_REAL_UNARY(asin, mpfr_asin)
HLOC_REAL_UNARY(asinh, mpfr_asinh)
HLOC_REAL_UNARY(atanh, mpfr_atanh)
HLOC_REAL_UNARY(cbrt, mpfr_cbrt)
HLOC_REAL_UNARY(cos, mpfr_cos)
HLOC_REAL_UNARY(cosh, mpfr_cosh)
HLOC_REAL_UNARY(erf, mpfr_erf)
HLOC_REAL_UNARY(exp, mpfr_exp)
HLOC_REAL_UNARY(expm1, mpfr_expm1)
HLOC_REAL_UNARY(log, mpfr_log)
HLOC_REAL_UNARY(log1p, mpfr_log1p)
HLOC_REAL_UNARY(sin, mpfr_sin)
HLOC_REAL_UNARY(sinh, mpfr_sinh)
HLOC_REAL_UNARY(sqrt, mpfr_sqrt)
HLOC_REAL_UNARY(tan, mpfr_tan)
HLOC_REAL_UNARY(tanh, mpfr_tanh)
#undef HLOC_REAL_UNARY

} // namespace hloc::accuracy
