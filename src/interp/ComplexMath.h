#pragma once
// Complex functions the C++ library lacks.

#include <cmath>
#include <complex>

namespace hloc::interp {

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
  T halfSine = std::sin(z.imag() / 2);
  T real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * halfSine * halfSine;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}

/// log(1 + z) without cancellation near 0: |1+z|² - 1 = x(2 + x) + y².
template <typename T> std::complex<T> complexLog1p(std::complex<T> z) {
  T x = z.real(), y = z.imag();
  bool small = std::fabs(x) < T(0.5) && std::fabs(y) < T(0.5);
  T real = small ? std::log1p(x * (2 + x) + y * y) / 2 : std::log(std::hypot(1 + x, y));
  return {real, std::atan2(y, 1 + x)};
}

} // namespace hloc::interp
