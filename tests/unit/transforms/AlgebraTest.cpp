// Each rule of the algebraic simplifier on texts it applies to: the result is the same bit for bit, for all kinds of
// arguments. A rule without a text fails.
#include "transforms/AlgebraicRules.h"

#include "RunPasses.h"
#include "SameResults.h"

#include <map>

using namespace hloc;
using namespace hloc::test;

namespace {

struct RuleCase {
  const char *rule;
  const char *body; ///< of the entry; one that begins with `HloModule` is the whole text
};

const RuleCase cases[] = {
    // --- arithmetic
    {"add-zero", "x = s32[5] parameter(0)\n c = s32[] constant(0)\n z = s32[5] broadcast(c), dimensions={}\n"
                 "ROOT r = s32[5] add(z, x)"},
    {"add-zero", "x = f32[7] parameter(0)\n z = f32[7] constant({-0,-0,-0,-0,-0,-0,-0})\n ROOT r = f32[7] add(x, z)"},
    {"add-zero", "x = pred[7] parameter(0)\n z = pred[7] constant({0,0,0,0,0,0,0})\n ROOT r = pred[7] add(x, z)"},
    {"add-zero-to-sum", "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                        "ROOT s = f32[] add(a, b)\n}\nENTRY e {\n x = f32[9,3] parameter(0)\n"
                        "z = f32[] constant(0)\n r = f32[9] reduce(x, z), dimensions={1}, to_apply=sum\n"
                        "y = f32[3,3] reshape(r)\n zs = f32[3,3] broadcast(z), dimensions={}\n"
                        "ROOT t = f32[3,3] add(zs, y)\n}\n"},
    {"add-difference", "x = s8[9] parameter(0)\n y = s8[9] parameter(1)\n d = s8[9] subtract(y, x)\n"
                       "ROOT r = s8[9] add(x, d)"},
    {"add-negation", "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n n = f32[9] negate(y)\n"
                     "ROOT r = f32[9] add(x, n)"},
    {"add-negation", "x = f8e4m3fnuz[9] parameter(0)\n y = f8e4m3fnuz[9] parameter(1)\n n = f8e4m3fnuz[9] negate(y)\n"
                     "ROOT r = f8e4m3fnuz[9] add(n, x)"},
    {"add-negation", "x = c64[9] parameter(0)\n y = c64[9] parameter(1)\n n = c64[9] negate(y)\n"
                     "ROOT r = c64[9] add(n, x)"},
    {"add-negation", "x = f4e2m1fn[9] parameter(0)\n y = f4e2m1fn[9] parameter(1)\n n = f4e2m1fn[9] negate(y)\n"
                     "ROOT r = f4e2m1fn[9] add(x, n)"},
    {"subtract-zero", "x = bf16[5] parameter(0)\n z = bf16[5] constant({0,0,0,0,0})\n ROOT r = bf16[5] subtract(x, z)"},
    {"subtract-zero", "x = c64[2] parameter(0)\n z = c64[2] constant({(0,0),(0,0)})\n ROOT r = c64[2] subtract(x, z)"},
    {"subtract-zero", "x = u16[2] parameter(0)\n z = u16[2] constant({0,0})\n ROOT r = u16[2] subtract(x, z)"},
    {"subtract-self", "x = u64[3] parameter(0)\n ROOT r = u64[3] subtract(x, x)"},
    {"subtract-self", "x = s4[] parameter(0)\n ROOT r = s4[] subtract(x, x)"},
    {"subtract-difference", "x = s16[9] parameter(0)\n y = s16[9] parameter(1)\n d = s16[9] subtract(x, y)\n"
                            "ROOT r = s16[9] subtract(x, d)"},
    {"subtract-from-sum", "x = s32[9] parameter(0)\n y = s32[9] parameter(1)\n d = s32[9] add(y, x)\n"
                          "ROOT r = s32[9] subtract(d, x)"},
    {"subtract-negation", "x = f16[9] parameter(0)\n y = f16[9] parameter(1)\n n = f16[9] negate(y)\n"
                          "ROOT r = f16[9] subtract(x, n)"},
    {"subtract-negation", "x = s8[9] parameter(0)\n y = s8[9] parameter(1)\n n = s8[9] negate(y)\n"
                          "ROOT r = s8[9] subtract(x, n)"},
    {"negate-negation", "x = f64[9] parameter(0)\n n = f64[9] negate(x)\n ROOT r = f64[9] negate(n)"},
    {"negate-negation", "x = u32[9] parameter(0)\n n = u32[9] negate(x)\n ROOT r = u32[9] negate(n)"},
    {"negate-negation", "x = f8e5m2fnuz[99] parameter(0)\n n = f8e5m2fnuz[99] negate(x)\n"
                        "ROOT r = f8e5m2fnuz[99] negate(n)"},
    {"negate-difference", "x = s32[9] parameter(0)\n y = s32[9] parameter(1)\n d = s32[9] subtract(x, y)\n"
                          "ROOT r = s32[9] negate(d)"},
    {"multiply-one", "x = f32[9] parameter(0)\n c = f32[] constant(1)\n o = f32[9] broadcast(c), dimensions={}\n"
                     "ROOT r = f32[9] multiply(o, x)"},
    {"multiply-one", "x = f8e8m0fnu[9] parameter(0)\n c = f8e8m0fnu[] constant(1)\n"
                     "o = f8e8m0fnu[9] broadcast(c), dimensions={}\n ROOT r = f8e8m0fnu[9] multiply(x, o)"},
    {"multiply-one", "x = pred[2] parameter(0)\n o = pred[2] constant({1,1})\n ROOT r = pred[2] multiply(x, o)"},
    {"multiply-zero", "x = s32[9] parameter(0)\n c = s32[] constant(0)\n o = s32[9] broadcast(c), dimensions={}\n"
                      "ROOT r = s32[9] multiply(o, x)"},
    {"multiply-negations", "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n a = f32[9] negate(x)\n"
                           "b = f32[9] negate(y)\n ROOT r = f32[9] multiply(a, b)"},
    {"multiply-negations", "x = c64[9] parameter(0)\n y = c64[9] parameter(1)\n a = c64[9] negate(x)\n"
                           "b = c64[9] negate(y)\n ROOT r = c64[9] multiply(a, b)"},
    {"multiply-moduli", "x = f32[99] parameter(0)\n a = f32[99] abs(x)\n ROOT r = f32[99] multiply(a, a)"},
    {"multiply-moduli", "x = s8[99] parameter(0)\n a = s8[99] abs(x)\n ROOT r = s8[99] multiply(a, a)"},
    {"abs-of-negation", "x = s8[99] parameter(0)\n n = s8[99] negate(x)\n ROOT r = s8[99] abs(n)"},
    {"abs-of-negation", "x = c64[99] parameter(0)\n n = c64[99] negate(x)\n ROOT r = f32[99] abs(n)"},
    {"abs-of-abs", "x = s8[99] parameter(0)\n n = s8[99] abs(x)\n ROOT r = s8[99] abs(n)"},
    {"abs-of-abs", "x = c64[99] parameter(0)\n n = f32[99] abs(x)\n ROOT r = f32[99] abs(n)"},
    {"divide-by-one", "x = s32[9] parameter(0)\n c = s32[] constant(1)\n o = s32[9] broadcast(c), dimensions={}\n"
                      "ROOT r = s32[9] divide(x, o)"},
    {"divide-by-one", "x = f16[99] parameter(0)\n c = f16[] constant(1)\n o = f16[99] broadcast(c), dimensions={}\n"
                      "ROOT r = f16[99] divide(x, o)"},
    {"divide-by-power-of-two", "x = u32[9] parameter(0)\n c = u32[] constant(2147483648)\n"
                               "o = u32[9] broadcast(c), dimensions={}\n ROOT r = u32[9] divide(x, o)"},
    {"divide-by-power-of-two", "x = u64[9] parameter(0)\n c = u64[] constant(8)\n"
                               "o = u64[9] broadcast(c), dimensions={}\n ROOT r = u64[9] divide(x, o)"},
    {"divide-by-power-of-two", "x = u4[9] parameter(0)\n c = u4[] constant(2)\n"
                               "o = u4[9] broadcast(c), dimensions={}\n ROOT r = u4[9] divide(x, o)"},
    {"remainder-of-power-of-two", "x = u64[9] parameter(0)\n c = u64[] constant(9223372036854775808)\n"
                                  "o = u64[9] broadcast(c), dimensions={}\n ROOT r = u64[9] remainder(x, o)"},
    {"remainder-of-power-of-two", "x = u8[9] parameter(0)\n c = u8[] constant(1)\n"
                                  "o = u8[9] broadcast(c), dimensions={}\n ROOT r = u8[9] remainder(x, o)"},
    {"remainder-twice", "x = f32[99] parameter(0)\n y = f32[99] parameter(1)\n a = f32[99] remainder(x, y)\n"
                        "ROOT r = f32[99] remainder(a, y)"},
    {"remainder-twice", "x = s8[99] parameter(0)\n y = s8[99] parameter(1)\n a = s8[99] remainder(x, y)\n"
                        "ROOT r = s8[99] remainder(a, y)"},
    {"power-one", "x = f32[99] parameter(0)\n c = f32[] constant(1)\n o = f32[99] broadcast(c), dimensions={}\n"
                  "ROOT r = f32[99] power(x, o)"},
    {"power-one", "x = s32[9] parameter(0)\n c = s32[] constant(1)\n o = s32[9] broadcast(c), dimensions={}\n"
                  "ROOT r = s32[9] power(x, o)"},
    {"power-zero", "x = f32[99] parameter(0)\n c = f32[] constant(-0)\n o = f32[99] broadcast(c), dimensions={}\n"
                   "ROOT r = f32[99] power(x, o)"},
    {"power-zero", "x = u8[9] parameter(0)\n c = u8[] constant(0)\n o = u8[9] broadcast(c), dimensions={}\n"
                   "ROOT r = u8[9] power(x, o)"},
    {"square-of-integer", "x = s16[9] parameter(0)\n c = s16[] constant(2)\n o = s16[9] broadcast(c), dimensions={}\n"
                          "ROOT r = s16[9] power(x, o)"},
    {"maximum-of-same", "x = f32[99] parameter(0)\n ROOT r = f32[99] maximum(x, x)"},
    {"minimum-of-same", "x = pred[9] parameter(0)\n ROOT r = pred[9] minimum(x, x)"},
    {"maximum-of-least",
     "x = f32[99] parameter(0)\n c = f32[] constant(-inf)\n o = f32[99] broadcast(c), dimensions={}\n"
     "ROOT r = f32[99] maximum(x, o)"},
    {"maximum-of-least", "x = s32[9] parameter(0)\n c = s32[] constant(-2147483648)\n"
                         "o = s32[9] broadcast(c), dimensions={}\n ROOT r = s32[9] maximum(x, o)"},
    {"maximum-of-least", "x = u32[9] parameter(0)\n c = u32[] constant(0)\n"
                         "o = u32[9] broadcast(c), dimensions={}\n ROOT r = u32[9] maximum(o, x)"},
    {"minimum-of-greatest", "x = f16[99] parameter(0)\n c = f16[] constant(inf)\n"
                            "o = f16[99] broadcast(c), dimensions={}\n ROOT r = f16[99] minimum(x, o)"},
    {"minimum-of-greatest", "x = s64[9] parameter(0)\n c = s64[] constant(9223372036854775807)\n"
                            "o = s64[9] broadcast(c), dimensions={}\n ROOT r = s64[9] minimum(x, o)"},
    {"minimum-of-greatest", "x = s4[9] parameter(0)\n c = s4[] constant(7)\n"
                            "o = s4[9] broadcast(c), dimensions={}\n ROOT r = s4[9] minimum(x, o)"},
    {"minimum-of-greatest", "x = pred[2] parameter(0)\n o = pred[2] constant({1,1})\n ROOT r = pred[2] minimum(x, o)"},
    {"maximum-twice", "x = s32[9] parameter(0)\n y = s32[9] parameter(1)\n m = s32[9] maximum(x, y)\n"
                      "ROOT r = s32[9] maximum(y, m)"},
    {"minimum-twice", "x = u32[9] parameter(0)\n y = u32[9] parameter(1)\n m = u32[9] minimum(x, y)\n"
                      "ROOT r = u32[9] minimum(m, y)"},
    {"clamp-twice", "a = s32[] parameter(0)\n b = s32[] parameter(1)\n x = s32[9] parameter(2)\n"
                    "c = s32[9] clamp(a, x, b)\n ROOT r = s32[9] clamp(a, c, b)"},
    // --- logic
    {"and-same", "x = s32[9] parameter(0)\n ROOT r = s32[9] and(x, x)"},
    {"and-ones", "x = s32[9] parameter(0)\n c = s32[] constant(-1)\n o = s32[9] broadcast(c), dimensions={}\n"
                 "ROOT r = s32[9] and(x, o)"},
    {"and-ones", "x = pred[2] parameter(0)\n o = pred[2] constant({1,1})\n ROOT r = pred[2] and(o, x)"},
    {"and-zero", "x = u4[9] parameter(0)\n c = u4[] constant(0)\n o = u4[9] broadcast(c), dimensions={}\n"
                 "ROOT r = u4[9] and(x, o)"},
    {"or-same", "x = u8[9] parameter(0)\n ROOT r = u8[9] or(x, x)"},
    {"or-zero", "x = u8[9] parameter(0)\n c = u8[] constant(0)\n o = u8[9] broadcast(c), dimensions={}\n"
                "ROOT r = u8[9] or(x, o)"},
    {"or-ones", "x = u8[9] parameter(0)\n c = u8[] constant(255)\n o = u8[9] broadcast(c), dimensions={}\n"
                "ROOT r = u8[9] or(x, o)"},
    {"or-ones", "x = pred[2] parameter(0)\n o = pred[2] constant({1,1})\n ROOT r = pred[2] or(o, x)"},
    {"xor-zero", "x = s64[9] parameter(0)\n c = s64[] constant(0)\n o = s64[9] broadcast(c), dimensions={}\n"
                 "ROOT r = s64[9] xor(x, o)"},
    {"xor-same", "x = pred[9] parameter(0)\n ROOT r = pred[9] xor(x, x)"},
    {"not-not", "x = s8[9] parameter(0)\n n = s8[9] not(x)\n ROOT r = s8[9] not(n)"},
    {"not-of-compare", "x = s8[99] parameter(0)\n y = s8[99] parameter(1)\n c = pred[99] compare(x, y), direction=LT\n"
                       "ROOT r = pred[99] not(c)"},
    {"not-of-compare", "x = u8[99] parameter(0)\n y = u8[99] parameter(1)\n"
                       "c = pred[99] compare(x, y), direction=EQ, type=UNSIGNED\n ROOT r = pred[99] not(c)"},
    {"shift-left-by-zero", "x = s32[9] parameter(0)\n c = s32[] constant(0)\n o = s32[9] broadcast(c), dimensions={}\n"
                           "ROOT r = s32[9] shift-left(x, o)"},
    {"shift-right-by-zero", "x = s32[9] parameter(0)\n c = s32[] constant(0)\n o = s32[9] broadcast(c), dimensions={}\n"
                            "ROOT r = s32[9] shift-right-logical(x, o)"},
    {"shift-right-arithmetic-by-zero", "x = s4[9] parameter(0)\n c = s4[] constant(0)\n"
                                       "o = s4[9] broadcast(c), dimensions={}\n"
                                       "ROOT r = s4[9] shift-right-arithmetic(x, o)"},
    {"compare-same", "x = s32[9] parameter(0)\n ROOT r = pred[9] compare(x, x), direction=GE"},
    {"compare-same", "x = u32[9] parameter(0)\n ROOT r = pred[9] compare(x, x), direction=NE"},
    {"compare-with-least", "x = u8[9] parameter(0)\n c = u8[] constant(0)\n o = u8[9] broadcast(c), dimensions={}\n"
                           "ROOT r = pred[9] compare(x, o), direction=LT"},
    {"compare-with-least", "x = u8[9] parameter(0)\n c = u8[] constant(0)\n o = u8[9] broadcast(c), dimensions={}\n"
                           "ROOT r = pred[9] compare(o, x), direction=LE"},
    {"compare-with-truth", "x = pred[2] parameter(0)\n o = pred[2] constant({1,1})\n"
                           "ROOT r = pred[2] compare(x, o), direction=NE"},
    {"compare-with-truth", "x = pred[2] parameter(0)\n o = pred[2] constant({0,0})\n"
                           "ROOT r = pred[2] compare(o, x), direction=NE"},
    {"select-of-same", "p = pred[2] parameter(0)\n x = f32[2] parameter(1)\n ROOT r = f32[2] select(p, x, x)"},
    {"select-by-constant", "p = pred[] constant(false)\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n"
                           "ROOT r = f32[2] select(p, x, y)"},
    {"select-by-constant", "p = pred[2] constant({1,1})\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n"
                           "ROOT r = f32[2] select(p, x, y)"},
    {"select-by-not", "p = pred[2] parameter(2)\n n = pred[2] not(p)\n x = f32[2] parameter(0)\n"
                      "y = f32[2] parameter(1)\n ROOT r = f32[2] select(n, x, y)"},
    {"select-truths", "p = pred[2] parameter(0)\n x = pred[2] constant({1,1})\n y = pred[2] constant({0,0})\n"
                      "ROOT r = pred[2] select(p, x, y)"},
    {"select-truths", "p = pred[2] parameter(0)\n x = pred[2] constant({1,1})\n y = pred[2] constant({0,0})\n"
                      "ROOT r = pred[2] select(p, y, x)"},
    {"select-of-select", "p = pred[9] parameter(0)\n x = f32[9] parameter(1)\n y = f32[9] parameter(2)\n"
                         "z = f32[9] parameter(3)\n s = f32[9] select(p, x, y)\n ROOT r = f32[9] select(p, z, s)"},
    {"select-of-select", "p = pred[] parameter(0)\n x = f32[9] parameter(1)\n y = f32[9] parameter(2)\n"
                         "z = f32[9] parameter(3)\n s = f32[9] select(p, x, y)\n ROOT r = f32[9] select(p, s, z)"},
    // --- conversions
    {"convert-to-same", "x = f32[9] parameter(0)\n ROOT r = f32[9] convert(x)"},
    {"convert-twice", "x = f8e4m3fn[99] parameter(0)\n y = f32[99] convert(x)\n ROOT r = f8e4m3fn[99] convert(y)"},
    {"convert-twice", "x = bf16[99] parameter(0)\n y = f32[99] convert(x)\n ROOT r = f16[99] convert(y)"},
    {"convert-twice", "x = s16[99] parameter(0)\n y = s32[99] convert(x)\n ROOT r = s8[99] convert(y)"},
    {"convert-twice", "x = u8[99] parameter(0)\n y = s16[99] convert(x)\n ROOT r = s8[99] convert(y)"},
    {"convert-twice", "x = s8[99] parameter(0)\n y = f32[99] convert(x)\n ROOT r = s32[99] convert(y)"},
    {"convert-twice", "x = pred[9] parameter(0)\n y = s32[9] convert(x)\n ROOT r = bf16[9] convert(y)"},
    {"convert-twice", "x = f16[99] parameter(0)\n y = f64[99] convert(x)\n ROOT r = u8[99] convert(y)"},
    {"convert-twice", "x = f32[99] parameter(0)\n y = f64[99] convert(x)\n ROOT r = pred[99] convert(y)"},
    {"reduce-precision-to-own", "x = bf16[99] parameter(0)\n"
                                "ROOT r = bf16[99] reduce-precision(x), exponent_bits=8, mantissa_bits=7"},
    {"reduce-precision-to-own", "x = f64[99] parameter(0)\n"
                                "ROOT r = f64[99] reduce-precision(x), exponent_bits=11, mantissa_bits=52"},
    {"real-of-complex", "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n z = c64[9] complex(x, y)\n"
                        "ROOT r = f32[9] real(z)"},
    {"imag-of-complex", "x = f64[9] parameter(0)\n y = f64[9] parameter(1)\n z = c128[9] complex(x, y)\n"
                        "ROOT r = f64[9] imag(z)"},
    {"real-of-real", "x = f32[9] parameter(0)\n ROOT r = f32[9] real(x)"},
    {"imag-of-real", "x = f32[9] parameter(0)\n ROOT r = f32[9] imag(x)"},
    {"complex-of-parts", "x = c64[99] parameter(0)\n a = f32[99] real(x)\n b = f32[99] imag(x)\n"
                         "ROOT r = c64[99] complex(a, b)"},
    {"bitcast-convert-to-same", "x = f32[9] parameter(0)\n ROOT r = f32[9] bitcast-convert(x)"},
    {"bitcast-convert-twice", "x = f32[9] parameter(0)\n y = s32[9] bitcast-convert(x)\n"
                              "ROOT r = u32[9] bitcast-convert(y)"},
    {"bitcast-convert-twice", "x = f32[9] parameter(0)\n y = u8[9,4] bitcast-convert(x)\n"
                              "ROOT r = f32[9] bitcast-convert(y)"},
    {"copy-to-same-layout", "x = f32[9,3] parameter(0)\n ROOT r = f32[9,3] copy(x)"},
    {"copy-twice", "x = f32[9,3]{1,0} parameter(0)\n c = f32[9,3]{0,1} copy(x)\n ROOT r = f32[9,3]{1,0} copy(c)"},
    {"bitcast-to-same", "x = f32[9,3] parameter(0)\n ROOT r = f32[9,3] bitcast(x)"},
    {"bitcast-twice", "x = f32[9,4] parameter(0)\n b = f32[3,12]{0,1} bitcast(x)\n ROOT r = f32[6,6] bitcast(b)"},
    // --- movement
    {"splat-constant", "ROOT r = s4[2,3]{0,1} constant({{-3,-3,-3},{-3,-3,-3}})"},
    {"splat-constant", "ROOT r = c64[2] constant({(1,nan),(1,nan)})"},
    {"transpose-of-nothing", "x = f32[9,3] parameter(0)\n ROOT r = f32[9,3] transpose(x), dimensions={0,1}"},
    {"transpose-twice", "x = f32[2,3,5] parameter(0)\n t = f32[3,5,2] transpose(x), dimensions={1,2,0}\n"
                        "ROOT r = f32[2,5,3] transpose(t), dimensions={2,1,0}"},
    {"transpose-twice", "x = f32[2,3,5] parameter(0)\n t = f32[3,5,2] transpose(x), dimensions={1,2,0}\n"
                        "ROOT r = f32[2,3,5] transpose(t), dimensions={2,0,1}"},
    {"transpose-twice", "x = f32[2,3]{1,0} parameter(0)\n t = f32[3,2]{1,0} transpose(x), dimensions={1,0}\n"
                        "ROOT r = f32[2,3]{0,1} transpose(t), dimensions={1,0}"},
    {"transpose-of-scalar", "x = f32[] parameter(0)\n b = f32[2,3] broadcast(x), dimensions={}\n"
                            "ROOT r = f32[3,2] transpose(b), dimensions={1,0}"},
    {"reshape-to-same", "x = f32[9,3] parameter(0)\n ROOT r = f32[9,3] reshape(x)"},
    {"reshape-twice", "x = f32[9,4]{0,1} parameter(0)\n b = f32[3,12] reshape(x)\n ROOT r = f32[6,6]{0,1} reshape(b)"},
    {"reshape-twice", "x = f32[9,4] parameter(0)\n b = f32[36] reshape(x)\n ROOT r = f32[9,4] reshape(b)"},
    {"reshape-across-layouts", "x = f32[9,3]{1,0} parameter(0)\n ROOT r = f32[9,3]{0,1} reshape(x)"},
    {"reshape-across-layouts", "x = f32[6,4]{0,1} parameter(0)\n ROOT r = f32[2,3,4]{2,1,0} reshape(x)"},
    {"reshape-across-layouts", "x = f32[6,4]{1,0} parameter(0)\n ROOT r = f32[2,3,1,4]{0,3,2,1} reshape(x)"},
    {"reshape-across-layouts", "x = f32[6,4]{0,1} parameter(0)\n ROOT r = f32[3,8]{0,1} reshape(x)"},
    {"reshape-across-layouts", "x = f32[2,3,4]{1,2,0} parameter(0)\n ROOT r = f32[6,4]{0,1} reshape(x)"},
    {"elementwise-across-layouts", "x = f32[9,3]{1,0} parameter(0)\n ROOT r = bf16[9,3]{0,1} convert(x)"},
    {"elementwise-across-layouts", "x = f32[9,3]{1,0} parameter(0)\n y = f32[9,3]{0,1} parameter(1)\n"
                                   "ROOT r = f32[9,3]{0,1} add(x, y)"},
    {"elementwise-across-layouts",
     "x = f32[9,3]{0,1} parameter(0)\n v = f32[3] parameter(1)\n y = f32[9,3]{1,0} broadcast(v), dimensions={1}\n"
     "ROOT r = f32[9,3]{0,1} add(x, y)"},
    {"reduce-of-transposes",
     "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
     "ENTRY e {\n x = f32[9,5] parameter(0)\n z = f32[] constant(0)\n"
     "t = f32[5,9] transpose(x), dimensions={1,0}\n ROOT r = f32[5] reduce(t, z), dimensions={1}, to_apply=sum\n}\n"},
    {"reduce-of-transposes",
     "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
     "ENTRY e {\n x = f32[4,5,6,7] parameter(0)\n z = f32[] constant(0)\n"
     "t = f32[5,6,4,7]{3,1,2,0} transpose(x), dimensions={1,2,0,3}\n"
     "ROOT r = f32[6,4]{0,1} reduce(t, z), dimensions={0,3}, to_apply=sum\n}\n"},
    {"reduce-of-transposes",
     "HloModule m\nboth {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n"
     "j = s32[] parameter(3)\n s = f32[] add(a, b)\n m = s32[] maximum(i, j)\n"
     "ROOT t = (f32[], s32[]) tuple(s, m)\n}\n"
     "ENTRY e {\n x = f32[9,5] parameter(0)\n y = s32[9,5] parameter(1)\n z = f32[] constant(0)\n"
     "o = s32[] constant(0)\n t = f32[5,9] transpose(x), dimensions={1,0}\n"
     "u = s32[5,9] transpose(y), dimensions={1,0}\n"
     "ROOT r = (f32[5], s32[5]) reduce(t, u, z, o), dimensions={1}, to_apply=both\n}\n"},
    {"reshape-of-scalar",
     "x = s8[] parameter(0)\n b = s8[2,3] broadcast(x), dimensions={}\n ROOT r = s8[6] reshape(b)"},
    {"broadcast-to-same", "x = f32[9,3] parameter(0)\n ROOT r = f32[9,3] broadcast(x), dimensions={0,1}"},
    {"broadcast-twice", "x = f32[3] parameter(0)\n b = f32[2,3] broadcast(x), dimensions={1}\n"
                        "ROOT r = f32[2,5,3] broadcast(b), dimensions={0,2}"},
    {"reverse-of-nothing", "x = f32[1,3] parameter(0)\n ROOT r = f32[1,3] reverse(x), dimensions={0}"},
    {"reverse-twice", "x = f32[2,3] parameter(0)\n b = f32[2,3] reverse(x), dimensions={0,1}\n"
                      "ROOT r = f32[2,3] reverse(b), dimensions={1}"},
    {"reverse-twice", "x = f32[2,3] parameter(0)\n b = f32[2,3] reverse(x), dimensions={0}\n"
                      "ROOT r = f32[2,3] reverse(b), dimensions={0}"},
    {"reverse-of-scalar", "x = f32[] parameter(0)\n b = f32[2,3] broadcast(x), dimensions={}\n"
                          "ROOT r = f32[2,3] reverse(b), dimensions={1}"},
    {"slice-of-scalar", "x = f32[] parameter(0)\n b = f32[9,3] broadcast(x), dimensions={}\n"
                        "ROOT r = f32[2,0] slice(b), slice={[1:5:2], [1:1]}"},
    {"dynamic-slice-of-scalar", "x = f32[] parameter(0)\n i = s32[] parameter(1)\n"
                                "b = f32[9] broadcast(x), dimensions={}\n"
                                "ROOT r = f32[2] dynamic-slice(b, i), dynamic_slice_sizes={2}"},
    {"elementwise-of-scalars", "x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
                               "a = f32[9] broadcast(x), dimensions={}\n b = f32[9] broadcast(y), dimensions={}\n"
                               "ROOT r = f32[9] divide(a, b)"},
    {"elementwise-of-scalars", "x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
                               "a = f32[9] broadcast(x), dimensions={}\n b = f32[9] broadcast(y), dimensions={}\n"
                               "ROOT r = pred[9] compare(a, b), direction=GE, type=TOTALORDER"},
    {"elementwise-of-scalars", "x = f32[] parameter(0)\n a = f32[9,3]{0,1} broadcast(x), dimensions={}\n"
                               "ROOT r = f32[9,3]{0,1} reduce-precision(a), exponent_bits=5, mantissa_bits=3"},
    {"elementwise-of-scalars", "p = pred[] parameter(0)\n x = f32[] parameter(1)\n y = f32[] parameter(2)\n"
                               "a = f32[9] broadcast(x), dimensions={}\n b = f32[9] broadcast(y), dimensions={}\n"
                               "ROOT r = f32[9] select(p, a, b)"},
    {"elementwise-of-scalars", "x = f32[] parameter(0)\n a = f32[9] broadcast(x), dimensions={}\n"
                               "ROOT r = f32[9] tanh(a)"},
    {"sort-of-singles", "HloModule m\nless {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                        "ROOT c = pred[] compare(a, b), direction=LT\n}\n"
                        "ENTRY e {\n x = f32[3,1] parameter(0)\n"
                        "ROOT r = f32[3,1] sort(x), dimensions={1}, to_apply=less\n}\n"},
    {"sort-of-singles",
     "HloModule m\nless {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n p = s32[] parameter(2)\n"
     "q = s32[] parameter(3)\n ROOT c = pred[] compare(a, b), direction=LT\n}\n"
     "ENTRY e {\n x = f32[3,1] parameter(0)\n y = s32[3,1] parameter(1)\n"
     "ROOT r = (f32[3,1], s32[3,1]) sort(x, y), dimensions={1}, to_apply=less\n}\n"},
    {"iota-of-singles", "ROOT r = f32[3,1] iota(), iota_dimension=1"},
    {"iota-of-singles", "ROOT r = c64[1] iota(), iota_dimension=0"},
    {"size-of-dimension", "x = f32[3,7] parameter(0)\n ROOT r = s32[] get-dimension-size(x), dimensions={1}"},
    {"reduce-of-singles", "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                          "ROOT s = f32[] add(a, b)\n}\nENTRY e {\n x = f32[9,1]{0,1} parameter(0)\n"
                          "z = f32[] constant(0)\n ROOT r = f32[9] reduce(x, z), dimensions={1}, to_apply=sum\n}\n"},
    {"reduce-of-singles", "HloModule m\ngap {\n a = s8[] parameter(0)\n b = s8[] parameter(1)\n"
                          "ROOT s = s8[] subtract(b, a)\n}\nENTRY e {\n x = s8[1] parameter(0)\n"
                          "z = s8[] constant(3)\n ROOT r = s8[] reduce(x, z), dimensions={0}, to_apply=gap\n}\n"},
    {"scatter-of-nothing", "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                           "ROOT c = f32[] add(a, b)\n}\n"
                           "ENTRY e {\n x = f32[3] parameter(0)\n i = s32[0,1] parameter(1)\n u = f32[0] parameter(2)\n"
                           "ROOT r = f32[3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
                           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n}\n"},
    {"scatter-one-each",
     "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
     "ENTRY e {\n z = f32[] parameter(0)\n x = f32[5,3,2] broadcast(z), dimensions={}\n"
     "i = s32[5,1,1,2] parameter(1)\n u = f32[5,1,2] parameter(2)\n"
     "ROOT r = f32[5,3,2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, "
     "scatter_dims_to_operand_dims={1}, input_batching_dims={0,2}, scatter_indices_batching_dims={0,3}, "
     "index_vector_dim=2, to_apply=sum\n}\n"},
    {"scatter-one-each",
     "HloModule m\ngap {\n a = s8[] parameter(0)\n b = s8[] parameter(1)\n ROOT c = s8[] subtract(b, a)\n}\n"
     "ENTRY e {\n z = s8[] constant(3)\n x = s8[4]{0} broadcast(z), dimensions={}\n"
     "i = u32[1] parameter(0)\n u = s8[1] parameter(1)\n"
     "ROOT r = s8[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=gap\n}\n"},
    {"scatter-one-each",
     "HloModule m\nnext {\n a = f16[] parameter(0)\n ROOT b = f16[] parameter(1)\n}\n"
     "ENTRY e {\n z = f16[] constant(nan)\n x = f16[3,4]{0,1} broadcast(z), dimensions={}\n"
     "i = s64[4,1] parameter(0)\n u = f16[4] parameter(1)\n"
     "ROOT r = f16[3,4]{0,1} scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, input_batching_dims={1}, scatter_indices_batching_dims={0}, "
     "index_vector_dim=1, to_apply=next\n}\n"},
    // --- slices, pads, concatenates
    {"slice-of-all", "x = f32[3,7] parameter(0)\n ROOT r = f32[3,7] slice(x), slice={[0:3], [0:7]}"},
    {"slice-twice", "x = f32[20,7] parameter(0)\n a = f32[6,7] slice(x), slice={[1:18:3], [0:7]}\n"
                    "ROOT r = f32[2,3] slice(a), slice={[1:4:2], [2:5]}"},
    {"slice-twice", "x = f32[20] parameter(0)\n a = f32[6] slice(x), slice={[1:17:3]}\n"
                    "ROOT r = f32[1] slice(a), slice={[5:6:4]}"},
    {"slice-of-concatenate", "x = f32[3] parameter(0)\n y = f32[0] parameter(1)\n z = f32[5] parameter(2)\n"
                             "c = f32[8] concatenate(x, y, z), dimensions={0}\n"
                             "ROOT r = f32[2] slice(c), slice={[4:8:3]}"},
    {"slice-of-concatenate", "x = f32[3,2] parameter(0)\n z = f32[5,2] parameter(1)\n"
                             "c = f32[8,2] concatenate(x, z), dimensions={0}\n"
                             "ROOT r = f32[5,2] slice(c), slice={[3:8], [0:2]}"},
    {"slice-of-pad", "x = f32[4] parameter(0)\n v = f32[] parameter(1)\n p = f32[9] pad(x, v), padding=2_3\n"
                     "ROOT r = f32[2] slice(p), slice={[3:6:2]}"},
    {"slice-of-pad", "x = f32[4] parameter(0)\n v = f32[] parameter(1)\n p = f32[9] pad(x, v), padding=2_3\n"
                     "ROOT r = f32[4] slice(p), slice={[2:6]}"},
    {"slice-of-pad", "x = f32[4] parameter(0)\n v = f32[] parameter(1)\n p = f32[9] pad(x, v), padding=2_3\n"
                     "ROOT r = f32[3] slice(p), slice={[6:9]}"},
    {"slice-of-pad", "x = f32[4] parameter(0)\n v = f32[] parameter(1)\n p = f32[5] pad(x, v), padding=-1_2\n"
                     "ROOT r = f32[2] slice(p), slice={[1:3]}"},
    {"slice-of-broadcast", "x = f32[4] parameter(0)\n p = f32[3,4] broadcast(x), dimensions={1}\n"
                           "ROOT r = f32[2,2] slice(p), slice={[1:3], [0:4:2]}"},
    {"slice-of-broadcast", "x = f32[4] parameter(0)\n p = f32[3,4] broadcast(x), dimensions={1}\n"
                           "ROOT r = f32[2,4] slice(p), slice={[1:3], [0:4]}"},
    {"dynamic-slice-of-known", "x = f32[4,9] parameter(0)\n i = s32[] constant(-3)\n j = s32[] constant(99)\n"
                               "ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}"},
    {"dynamic-slice-of-known", "x = f32[4,9] parameter(0)\n i = s32[] constant(1)\n j = s32[] parameter(1)\n"
                               "ROOT r = f32[2,9] dynamic-slice(x, i, j), dynamic_slice_sizes={2,9}"},
    {"dynamic-slice-of-known", "x = f32[4,9] parameter(0)\n i = u64[] constant(2)\n"
                               "j = u64[] constant(18446744073709551615)\n"
                               "ROOT r = f32[1,3] dynamic-slice(x, i, j), dynamic_slice_sizes={1,3}"},
    {"update-of-all", "x = f32[4] parameter(0)\n u = f32[4] parameter(1)\n i = s32[] parameter(2)\n"
                      "ROOT r = f32[4] dynamic-update-slice(x, u, i)"},
    {"update-of-nothing", "x = f32[4] parameter(0)\n u = f32[0] parameter(1)\n i = s32[] parameter(2)\n"
                          "ROOT r = f32[4] dynamic-update-slice(x, u, i)"},
    {"pad-of-nothing", "x = f32[4] parameter(0)\n v = f32[] parameter(1)\n ROOT r = f32[4] pad(x, v), padding=0_0"},
    {"pad-of-empty", "x = f32[0,3] parameter(0)\n v = f32[] parameter(1)\n"
                     "ROOT r = f32[2,4] pad(x, v), padding=1_1x1_0"},
    {"concatenate-of-one", "x = f32[4] parameter(0)\n ROOT r = f32[4] concatenate(x), dimensions={0}"},
    {"concatenate-of-empty", "x = f32[4] parameter(0)\n y = f32[0] parameter(1)\n z = f32[2] parameter(2)\n"
                             "ROOT r = f32[6] concatenate(x, y, z), dimensions={0}"},
    {"concatenate-twice", "x = f32[4] parameter(0)\n y = f32[1] parameter(1)\n z = f32[2] parameter(2)\n"
                          "c = f32[3] concatenate(y, z), dimensions={0}\n"
                          "ROOT r = f32[7] concatenate(c, x), dimensions={0}"},
    {"concatenate-of-neighbours", "x = f32[9,2] parameter(0)\n a = f32[2,2] slice(x), slice={[1:3], [0:2]}\n"
                                  "b = f32[4,2] slice(x), slice={[3:7], [0:2]}\n"
                                  "ROOT r = f32[8,2] concatenate(a, b, a), dimensions={0}"},
};

/// What has to stay as it is, and looks as if one of the rules applied.
const char *const unchanged[] = {
    "x = f32[1] parameter(0)\n z = f32[1] constant({0})\n ROOT r = f32[1] add(x, z)",
    "x = f32[1] parameter(0)\n z = f32[1] constant({-0})\n ROOT r = f32[1] subtract(x, z)",
    "x = f32[2] parameter(0)\n z = f32[2] constant({...})\n ROOT r = f32[2] subtract(x, z)",
    "x = f32[2] parameter(0)\n ROOT r = f32[2] subtract(x, x)",
    "x = f32[1] parameter(0)\n z = f32[1] constant({0})\n ROOT r = f32[1] multiply(x, z)",
    "x = c64[1] parameter(0)\n z = c64[1] constant({(1,0)})\n ROOT r = c64[1] multiply(x, z)",
    "x = f8e8m0fnu[9] parameter(0)\n n = f8e8m0fnu[9] negate(x)\n ROOT r = f8e8m0fnu[9] negate(n)",
    "x = s32[1] parameter(0)\n z = s32[1] constant({2})\n ROOT r = s32[1] divide(x, z)",
    "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n d = f32[9] subtract(x, y)\n ROOT r = f32[9] negate(d)",
    "x = f32[9] parameter(0)\n ROOT r = pred[9] compare(x, x), direction=EQ",
    "x = s32[1] parameter(0)\n z = s32[1] constant({0})\n ROOT r = pred[1] compare(x, z), direction=LT",
    "x = f32[9] parameter(0)\n y = f32[9] parameter(1)\n c = pred[9] compare(x, y), direction=LT\n"
    "ROOT r = pred[9] not(c)",
    "x = f32[9] parameter(0)\n y = bf16[9] convert(x)\n ROOT r = f32[9] convert(y)",
    "x = s32[9] parameter(0)\n y = f64[9] convert(x)\n ROOT r = s8[9] convert(y)",
    "x = s32[9] parameter(0)\n y = f32[9] convert(x)\n ROOT r = s32[9] convert(y)",
    "x = s8[9] parameter(0)\n y = u16[9] convert(x)\n ROOT r = s32[9] convert(y)",
    "x = u8[9] parameter(0)\n y = pred[9] bitcast-convert(x)\n ROOT r = u8[9] bitcast-convert(y)",
    "x = f16[9] parameter(0)\n ROOT r = f16[9] reduce-precision(x), exponent_bits=5, mantissa_bits=10",
    "x = f32[9,3]{1,0} parameter(0)\n ROOT r = f32[9,3]{0,1} copy(x)",
    "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
    "ENTRY e {\n x = f32[4,5,6] parameter(0)\n z = f32[] constant(0)\n"
    "t = f32[5,6,4] transpose(x), dimensions={1,2,0}\n"
    "ROOT r = f32[6] reduce(t, z), dimensions={0,2}, to_apply=sum\n}\n",
    "x = f32[9,3]{1,0} parameter(0)\n ROOT r = f32[9,1,3]{2,0,1} reshape(x)",
    "x = f32[6,4]{0,1} parameter(0)\n ROOT r = f32[2,3,4]{1,0,2} reshape(x)",
    "x = f32[9,1]{1,0} parameter(0)\n ROOT r = f32[9,1]{0,1} negate(x)",
    "x = f32[9] parameter(0)\n v = f32[] parameter(1)\n p = f32[19] pad(x, v), padding=1_1_1\n"
    "ROOT r = f32[3] slice(p), slice={[2:5]}",
    "x = f32[9] parameter(0)\n v = f32[] parameter(1)\n p = f32[11] pad(x, v), padding=1_1\n"
    "ROOT r = f32[3] slice(p), slice={[0:3]}",
    "x = f32[3] parameter(0)\n y = f32[5] parameter(1)\n c = f32[8] concatenate(x, y), dimensions={0}\n"
    "ROOT r = f32[2] slice(c), slice={[2:4]}",
    "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
    "ENTRY e {\n x = f32[9,2] parameter(0)\n z = f32[] constant(0)\n"
    "ROOT r = f32[9] reduce(x, z), dimensions={1}, to_apply=sum\n}\n",
    "HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
    "ENTRY e {\n x = f32[9,2] parameter(0)\n n = f32[] constant(-0)\n z = f32[] constant(0)\n"
    "r = f32[9] reduce(x, n), dimensions={1}, to_apply=sum\n zs = f32[9] broadcast(z), dimensions={}\n"
    "ROOT t = f32[9] add(r, zs)\n}\n",
    "HloModule m\nsum {\n a = f16[] parameter(0)\n b = f16[] parameter(1)\n ROOT s = f16[] add(a, b)\n}\n"
    "ENTRY e {\n x = f16[9,2] parameter(0)\n n = f16[] constant(0)\n"
    "r = f16[9] reduce(x, n), dimensions={1}, to_apply=sum\n s = f16[9] broadcast(n), dimensions={}\n"
    "ROOT t = f16[9] add(r, s)\n}\n",
    "HloModule m\nlast {\n a = f32[] parameter(0)\n ROOT b = f32[] parameter(1)\n}\n"
    "ENTRY e {\n x = f32[9,1] parameter(0)\n z = f32[] constant(0)\n"
    "ROOT r = f32[9] reduce(x, z), dimensions={1}, to_apply=last\n}\n",
};

std::string textOf(const char *body) {
  return llvm::StringRef(body).starts_with("HloModule") ? std::string(body) : entry(body);
}

/// Applies the rules to the entry of a copy.
std::unique_ptr<HloModule> rewritten(const HloModule &source, llvm::ArrayRef<RewriteRule> rules,
                                     HloStatistics &statistics) {
  std::unique_ptr<HloModule> module = cloneModule(source);
  HloEditor editor(*module->entry());
  rewriteToFixpoint(editor, rules, RewriteOptions(), statistics);
  return module;
}

} // namespace

TEST_CASE("every rule keeps every bit where it applies") {
  std::map<std::string, unsigned> proofs;
  for (const RuleCase &one : cases) {
    std::vector<RewriteRule> rules;
    llvm::copy_if(algebraicRules(), std::back_inserter(rules), [&](auto &rule) { return rule.name == one.rule; });
    std::string text = textOf(one.body);
    INFO(one.rule << "\n" << text);
    Parsed parsed(text);
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    DiagnosticEngine found;
    REQUIRE(verify(*parsed.module, found));
    HloStatistics statistics;
    auto module = rewritten(*parsed.module, rules, statistics);
    INFO(print(*module));
    CHECK(statistics.of(one.rule) == 1);
    REQUIRE(verify(*module, found));
    CHECK(resultDifference(*parsed.module, *module) == "");
    HloStatistics second;
    rewritten(*module, rules, second);
    CHECK(second.all().empty());
    ++proofs[one.rule];
  }
  for (const RewriteRule &rule : algebraicRules()) {
    INFO(rule.name.str() << " has no text it applies to");
    CHECK(proofs[rule.name.str()] > 0);
    CHECK(!rule.summary.empty());
  }
}

TEST_CASE("all rules together keep what one keeps") {
  for (const RuleCase &one : cases) {
    std::string text = textOf(one.body);
    INFO(text);
    Parsed parsed(text);
    REQUIRE(parsed.module);
    HloStatistics statistics;
    auto module = rewritten(*parsed.module, algebraicRules(), statistics);
    INFO(print(*module));
    CHECK(resultDifference(*parsed.module, *module) == "");
  }
}

TEST_CASE("what would change bits, or layouts, stays") {
  for (const char *body : unchanged) {
    std::string text = textOf(body);
    INFO(text);
    Parsed parsed(text);
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    HloStatistics statistics;
    auto module = rewritten(*parsed.module, algebraicRules(), statistics);
    INFO(print(*module));
    CHECK(statistics.all().empty());
  }
}

TEST_CASE("what a rule makes stems from where the replaced instruction does") {
  PassRun p(entry("x = f32[2] parameter(0)\n n = f32[2] negate(x)\n"
                  "ROOT r = f32[2] add(x, n), metadata={op_name=\"jit(f)/sum\"}"));
  CHECK(p.run(simplifyAlgebra) == PassResult::Changed);
  CHECK(p.module->entry()->root()->opName() == "jit(f)/sum");
}

TEST_CASE("fusions that arrive stay as they are") {
  PassRun p("HloModule m\nf {\n x = s32[2] parameter(0)\n n = s32[2] negate(x)\n ROOT m = s32[2] negate(n)\n}\n"
            "ENTRY e {\n x = s32[2] parameter(0)\n a = s32[2] negate(x)\n b = s32[2] negate(a)\n"
            "ROOT r = s32[2] fusion(b), kind=kLoop, calls=f\n}\n");
  CHECK(p.run(simplify) == PassResult::Unchanged);
  PassRun headerless("f {\n x = s32[2] parameter(0)\n n = s32[2] negate(x)\n ROOT m = s32[2] negate(n)\n}\n");
  CHECK(headerless.run(simplify) == PassResult::Unchanged);
}

TEST_CASE("loops and branches are simplified, what is applied to elements is not") {
  PassRun p("HloModule m\nsum {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n z = s32[] constant(0)\n"
            "c = s32[] add(b, z)\n ROOT d = s32[] add(a, c)\n}\n"
            "body {\n t = (s32[]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] negate(i)\n"
            "o = s32[] negate(n)\n one = s32[] constant(1)\n s = s32[] add(o, one)\n ROOT u = (s32[]) tuple(s)\n}\n"
            "condition {\n t = (s32[]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
            "k = s32[] constant(3)\n ROOT c = pred[] compare(i, k), direction=LT\n}\n"
            "ENTRY e {\n x = s32[4] parameter(0)\n z = s32[] constant(0)\n"
            "r = s32[] reduce(x, z), dimensions={0}, to_apply=sum\n t = (s32[]) tuple(r)\n"
            "ROOT w = (s32[]) while(t), condition=condition, body=body\n}\n");
  CHECK(p.run(simplify) == PassResult::Changed);
  CHECK(p.body("body") == "t = parameter()\ni = get-tuple-element(t)\none = constant()\ns = add(i one)\n"
                          "ROOT u = tuple(s)\n");
  CHECK(p.module->findComputation("sum")->instructions().size() == 5);
  CHECK(p.run(simplify) == PassResult::Unchanged);
}
