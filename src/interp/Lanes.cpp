#include "interp/Lanes.h"

#include "hloc/support/Check.h"
#include "interp/NarrowFloat.h"

#include <cstring>
#include <type_traits>

namespace hloc::interp {

ComputeType computeType(ElementType type) {
  switch (category(type)) {
  case ElementCategory::Pred:
    return ComputeType::Bool;
  case ElementCategory::Signed:
    return ComputeType::Signed;
  case ElementCategory::Unsigned:
    return ComputeType::Unsigned;
  case ElementCategory::Float:
    return type == ElementType::F64 ? ComputeType::Double : ComputeType::Single;
  case ElementCategory::Complex:
    return type == ElementType::C64 ? ComputeType::ComplexSingle : ComputeType::ComplexDouble;
  case ElementCategory::Token:
  case ElementCategory::Opaque:
    break;
  }
  HLOC_UNREACHABLE("tokens have no elements");
}

size_t laneBytes(ComputeType type) {
  return withLaneType(type, [](auto zero) { return sizeof(zero); });
}

bool isNative(ElementType type) { return !isPred(type) && hostBytes(type) == laneBytes(computeType(type)); }

namespace {

/// How elements of one type are kept (`Stored`), what they are computed in (`Lane`), and the way between the two.
template <ElementType E> struct Element;

struct Boolean {
  using Stored = uint8_t;
  using Lane = bool;
  static Lane load(Stored element) { return element != 0; }
  static Stored store(Lane lane) { return lane; }
};
template <typename T> struct Native {
  using Stored = T;
  using Lane = T;
  static Lane load(Stored element) { return element; }
  static Stored store(Lane lane) { return lane; }
};
template <typename StoredType, typename LaneType> struct WholeInteger {
  using Stored = StoredType;
  using Lane = LaneType;
  static Lane load(Stored element) { return element; }
  static Stored store(Lane lane) { return Stored(lane); } // wraps
};
template <unsigned Bits> struct PartialSigned {
  using Stored = int8_t;
  using Lane = int64_t;
  static Lane load(Stored element) { return store(element); }
  static Stored store(Lane lane) { return Stored(int64_t(uint64_t(lane) << (64 - Bits)) >> (64 - Bits)); }
};
template <unsigned Bits> struct PartialUnsigned {
  using Stored = uint8_t;
  using Lane = uint64_t;
  static Lane load(Stored element) { return store(element); }
  static Stored store(Lane lane) { return Stored(lane & ((1u << Bits) - 1)); }
};
template <FloatFormat F> struct NarrowFloat {
  using Stored = std::conditional_t<(F.bits > 8), uint16_t, uint8_t>;
  using Lane = float;
  static Lane load(Stored element) {
    if constexpr (F.bits == 16)
      return F.exponentBits == 8 ? decodeBrain(element) : decodeHalf(element);
    else
      return narrowValues<F>()[element];
  }
  static Stored store(Lane lane) {
    if constexpr (F.specials == FloatFormat::Specials::PowerOfTwo)
      return Stored(encodePowerOfTwo(lane));
    else
      return Stored(encodeNarrow<F>(lane));
  }
};

template <> struct Element<ElementType::Pred> : Boolean {};
template <> struct Element<ElementType::S1> : PartialSigned<1> {};
template <> struct Element<ElementType::S2> : PartialSigned<2> {};
template <> struct Element<ElementType::S4> : PartialSigned<4> {};
template <> struct Element<ElementType::S8> : WholeInteger<int8_t, int64_t> {};
template <> struct Element<ElementType::S16> : WholeInteger<int16_t, int64_t> {};
template <> struct Element<ElementType::S32> : WholeInteger<int32_t, int64_t> {};
template <> struct Element<ElementType::S64> : Native<int64_t> {};
template <> struct Element<ElementType::U1> : PartialUnsigned<1> {};
template <> struct Element<ElementType::U2> : PartialUnsigned<2> {};
template <> struct Element<ElementType::U4> : PartialUnsigned<4> {};
template <> struct Element<ElementType::U8> : WholeInteger<uint8_t, uint64_t> {};
template <> struct Element<ElementType::U16> : WholeInteger<uint16_t, uint64_t> {};
template <> struct Element<ElementType::U32> : WholeInteger<uint32_t, uint64_t> {};
template <> struct Element<ElementType::U64> : Native<uint64_t> {};
template <> struct Element<ElementType::F32> : Native<float> {};
template <> struct Element<ElementType::F64> : Native<double> {};
template <> struct Element<ElementType::C64> : Native<std::complex<float>> {};
template <> struct Element<ElementType::C128> : Native<std::complex<double>> {};

constexpr FloatFormat formatOf(ElementType type) {
  switch (type) {
#define HLOC_ELEMENT_TYPE(name, text, bits, category)
#define HLOC_FLOAT_TYPE(name, text, bits, exponentBits, mantissaBits, bias, specials)                                  \
  case ElementType::name:                                                                                              \
    return {bits, exponentBits, mantissaBits, bias, FloatFormat::Specials::specials};
#include "hloc/hlo/ElementTypes.def"
  default:
    return {};
  }
}
template <ElementType E>
  requires(formatOf(E).bits != 0 && formatOf(E).bits <= 16)
struct Element<E> : NarrowFloat<formatOf(E)> {};

struct Access {
  Load load;
  Store store;
  Round round;
};

template <ElementType E> Access accessOf() {
  using Rules = Element<E>;
  using Stored = typename Rules::Stored;
  using Lane = typename Rules::Lane;
  Access access;
  access.load = [](const uint8_t *elements, void *lanes, int64_t count) {
    auto *from = reinterpret_cast<const Stored *>(elements);
    auto *to = static_cast<Lane *>(lanes);
    for (int64_t i = 0; i < count; ++i)
      to[i] = Rules::load(from[i]);
  };
  access.store = [](const void *lanes, uint8_t *elements, int64_t count) {
    auto *from = static_cast<const Lane *>(lanes);
    auto *to = reinterpret_cast<Stored *>(elements);
    for (int64_t i = 0; i < count; ++i)
      to[i] = Rules::store(from[i]);
  };
  access.round = [](void *lanes, int64_t count) {
    auto *values = static_cast<Lane *>(lanes);
    for (int64_t i = 0; i < count; ++i)
      values[i] = Rules::load(Rules::store(values[i]));
  };
  if constexpr (std::is_same_v<Stored, Lane> || std::is_same_v<Rules, Element<ElementType::Pred>>)
    access.round = nullptr;
  return access;
}

template <> Access accessOf<ElementType::Token>() { HLOC_UNREACHABLE("tokens have no elements"); }
template <> Access accessOf<ElementType::Opaque>() { HLOC_UNREACHABLE("opaque values have no elements"); }

Access access(ElementType type) {
  switch (type) {
#define HLOC_ELEMENT_TYPE(name, text, bits, category)                                                                  \
  case ElementType::name:                                                                                              \
    return accessOf<ElementType::name>();
#include "hloc/hlo/ElementTypes.def"
  }
  HLOC_UNREACHABLE("element type out of range");
}

} // namespace

Load loadFunction(ElementType type) { return access(type).load; }
Store storeFunction(ElementType type) { return access(type).store; }
Round roundFunction(ElementType type) { return access(type).round; }

} // namespace hloc::interp
