// fmt's own code, compiled once. Debian has it as a shared library, which the static program may not need, and as
// headers, with which every file that formats a line compiles all of fmt again.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// What <fmt/format.h> declares `extern template`, or declares alone: of the types that hloc formats.
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
namespace dragonbox {
template auto to_decimal(float) noexcept -> decimal_fp<float>;
template auto to_decimal(double) noexcept -> decimal_fp<double>;
} // namespace dragonbox
} // namespace detail
FMT_END_NAMESPACE
