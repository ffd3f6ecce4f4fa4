#pragma once
// Complex functions, evaluated in more digits than their type has and rounded once: where parts cancel, the C library's
// are several units in the last place off, and intermediate results overflow that the function does not.

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

namespace hloc::interp {

template <typename T> using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;
template <typename T> std::complex<Wider<T>> widened(std::complex<T> z) { return {z.real(), z.imag()}; }
template <typename T, typename W> std::complex<T> rounded(std::complex<W> z) { return {T(z.real()), T(z.imag())}; }
/// A function of complex numbers of the wider type, for those of T.
template <typename T, typename Function> std::complex<T> inMoreDigits(Function function, std::complex<T> z) {
  return rounded<T>(function(widened(z)));
}

/// Finite numbers by the C library; others by Smith's method, with the cases of
/// Annex G that it leaves undecided: which part of an infinite quotient is NaN is written down in src/hlo/SEMANTICS.md.
template <typename T> std::complex<T> complexDivide(std::complex<T> x, std::complex<T> y) {
  auto isFinite = [](std::complex<T> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
  auto isInfinite = [](std::complex<T> z) { return std::isinf(z.real()) || std::isinf(z.imag()); };
  if (isFinite(x) && isFinite(y) && y != std::complex<T>(0))
    return rounded<T>(widened(x) / widened(y));
  auto direction = [](std::complex<T> z) {
    auto part = [](T a) { return std::copysign(std::isinf(a) ? T(1) : T(0), a); };
    return std::complex<T>(part(z.real()), part(z.imag()));
  };
  auto timesConjugate = [](std::complex<T> a, std::complex<T> b) {
    return std::complex<T>(a.real() * b.real() + a.imag() * b.imag(), a.imag() * b.real() - a.real() * b.imag());
  };
  bool realLarger = std::fabs(y.real()) >= std::fabs(y.imag());
  T larger = realLarger ? y.real() : y.imag(), smaller = realLarger ? y.imag() : y.real();
  T ratio = smaller / larger, denominator = larger + smaller * ratio;
  T p = realLarger ? x.real() : x.imag(), q = realLarger ? x.imag() : x.real();
  T re = (p + q * ratio) / denominator;
  T im = (realLarger ? x.imag() - x.real() * ratio : x.imag() * ratio - x.real()) / denominator;
  if (!std::isnan(re) || !std::isnan(im))
    return {re, im};
  constexpr T infinity = std::numeric_limits<T>::infinity();
  if (larger == 0)
    return {x.real() / y.real(), x.imag() / y.real()};
  if (isInfinite(x) && isFinite(y)) {
    std::complex<T> towards = timesConjugate(direction(x), y);
    return {infinity * towards.real(), infinity * towards.imag()};
  }
  if (isFinite(x) && isInfinite(y)) {
    std::complex<T> towards = timesConjugate(x, direction(y));
    return {0 * towards.real(), 0 * towards.imag()};
  }
  return {re, im};
}

/// 1/sqrt(z) through the polar form, which keeps the limits at 0 and infinity.
template <typename T> std::complex<T> complexRsqrt(std::complex<T> z) {
  if (z == std::complex<T>(0))
    return {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()};
  if (std::isinf(z.real()) || std::isinf(z.imag()))
    return {T(0), std::copysign(T(0), -z.imag())};
  return std::complex<T>(1) / std::sqrt(z);
}

/// exp(z) - 1 without cancellation near 0: e^x cos y - 1 = expm1(x) cos y - 2 sin²(y/2).
template <typename T> std::complex<T> complexExpm1(std::complex<T> z) {
  if (z.imag() == 0)
    return {std::expm1(z.real()), z.imag()};
  if (z.real() == -std::numeric_limits<T>::infinity()) // whatever the angle
    return {-1, std::exp(z).imag()};
  if (z.real() > 50) // the one is lost, and e^x may overflow where its product does not
    return std::exp(z);
  T halfSine = std::sin(z.imag() / 2);
  T real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * halfSine * halfSine;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}

/// log(1 + z) without cancellation near 0: |1+z|² - 1 = x(2 + x) + y². The library's log does not overflow.
template <typename T> std::complex<T> complexLog1p(std::complex<T> z) {
  T x = z.real(), y = z.imag();
  bool small = std::fabs(x) < T(0.5) && std::fabs(y) < T(0.5);
  if (small)
    return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
  return std::log(std::complex<T>(1 + x, y));
}

} // namespace hloc::interp
