// Some fusions as a module of their own: what becomes a parameter, what a result, what lies in whose memory.
#include "RunPasses.h"

#include "hloc/hlo/InputOutputAlias.h"
#include "hloc/transforms/ExtractFusions.h"

using namespace hloc;
using namespace hloc::test;

namespace {

const char *chain = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
                    "f { a = f32[4] parameter(0)\n ROOT n = f32[4] negate(a) }\n"
                    "g { a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n s = f32[4] add(a, b)\n"
                    " d = f32[4] subtract(a, b)\n ROOT t = (f32[4], f32[4]) tuple(s, d) }\n"
                    "h { a = f32[2,2] parameter(0)\n ROOT n = f32[2,2] abs(a) }\n"
                    "k { a = f32[4] parameter(0)\n ROOT n = f32[4] sqrt(a) }\n"
                    "ENTRY e { p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n"
                    " v = f32[4] fusion(p), kind=kLoop, calls=f\n"
                    " w = (f32[4], f32[4]) fusion(q, v), kind=kLoop, calls=g\n"
                    " w0 = f32[4] get-tuple-element(w), index=0\n w1 = f32[4] get-tuple-element(w), index=1\n"
                    " c = f32[2,2] bitcast(w0)\n x = f32[2,2] fusion(c), kind=kLoop, calls=h\n"
                    " y = f32[4] fusion(w1), kind=kLoop, calls=k\n"
                    " ROOT t = (f32[4], f32[2,2]) tuple(y, x) }\n";

/// `chain` without all but these fusions.
struct Extracted : PassRun {
  explicit Extracted(llvm::ArrayRef<llvm::StringRef> names,
                     llvm::ArrayRef<std::pair<llvm::StringRef, InPlaceOutput>> inPlace = {})
      : PassRun(chain) {
    auto find = [&](llvm::StringRef name) -> const HloInstruction * {
      for (const HloInstruction *instr : module->entry()->instructions())
        if (instr->name() == name)
          return instr;
      return nullptr;
    };
    std::vector<ExtractedFusion> fusions;
    for (llvm::StringRef name : names)
      fusions.push_back({find(name), ""});
    std::vector<InPlaceOutput> aliases;
    for (auto [name, alias] : inPlace)
      aliases.push_back({find(name), alias.output, alias.operand});
    whole = std::move(module);
    module = extractFusions(*whole, fusions, aliases);
    requireSound();
  }
  std::string aliases() const {
    const AttributeValue *text = module->find(AttributeKey::InputOutputAlias);
    return text ? std::get<llvm::StringRef>(*text).str() : "";
  }
  std::unique_ptr<HloModule> whole;
};

} // namespace

TEST_CASE("extracted: one fusion reads parameters in the order of its operands") {
  Extracted w({"w"});
  CHECK(w.body() == "q = parameter()\nv = parameter()\nROOT w = fusion(q v)\n");
  CHECK(w.module->computations().size() == 2);
  CHECK(w.aliases().empty());
  Extracted x({"x"});
  CHECK(x.body() == "c = parameter()\nROOT x = fusion(c)\n");
}

TEST_CASE("extracted: what is between stays, and results are what others read") {
  CHECK(Extracted({"v", "w"}).body() == "p = parameter()\nq = parameter()\nv = fusion(p)\nROOT w = fusion(q v)\n");
  // w1 is read by y, which is not extracted, so w is a result beside x.
  CHECK(Extracted({"w", "x"}).body() == "q = parameter()\nv = parameter()\nw = fusion(q v)\n"
                                        "w0 = get-tuple-element(w)\nc = bitcast(w0)\nx = fusion(c)\n"
                                        "ROOT tuple.1.anon = tuple(w x)\n");
  CHECK(Extracted({"y", "w", "x"}).body() == "q = parameter()\nv = parameter()\nw = fusion(q v)\n"
                                             "w0 = get-tuple-element(w)\nw1 = get-tuple-element(w)\n"
                                             "c = bitcast(w0)\nx = fusion(c)\ny = fusion(w1)\n"
                                             "ROOT tuple.1.anon = tuple(x y)\n");
}

TEST_CASE("extracted: results lie in parameters where they lay in what these stand for") {
  Extracted w({"w"}, {{"w", {nullptr, 1, 0}}});
  CHECK(w.aliases() == "{ {1}: (0, {}, may-alias) }");
  Extracted two({"w", "x"}, {{"w", {nullptr, 0, 1}}, {"x", {nullptr, 0, 0}}});
  CHECK(two.aliases() == "{ {0, 0}: (1, {}, may-alias) }"); // x reads w, not a parameter
  REQUIRE(inputOutputAliases(*two.module));
  CHECK(Extracted({"v"}, {{"w", {nullptr, 0, 1}}}).aliases().empty()); // not extracted
}

TEST_CASE("extracted: what is between may be long") {
  constexpr int length = 300'000; // a call for each would need more stack than there is
  std::string text = "HloModule m\nf { a = f32[4] parameter(0)\n ROOT n = f32[4] negate(a) }\n"
                     "ENTRY e { p = f32[4] parameter(0)\n b0 = f32[4] fusion(p), kind=kLoop, calls=f\n";
  for (int i = 1; i <= length; ++i)
    text += " b" + std::to_string(i) + " = f32[4] bitcast(b" + std::to_string(i - 1) + ")\n";
  text += " x = f32[4] fusion(b" + std::to_string(length) + "), kind=kLoop, calls=f\n";
  text += " ROOT t = (f32[4], f32[4]) tuple(x, b" + std::to_string(length) + ") }\n";
  PassRun whole(text);
  std::vector<ExtractedFusion> both;
  for (const HloInstruction *instr : whole.module->entry()->instructions())
    if (instr->opcode() == Opcode::Fusion)
      both.push_back({instr, ""});
  REQUIRE(both.size() == 2);
  std::unique_ptr<HloModule> part = extractFusions(*whole.module, both, {});
  CHECK(part->entry()->root()->numOperands() == 2); // both are read from outside
  CHECK(part->entry()->instructions().size() == length + 4);
}
