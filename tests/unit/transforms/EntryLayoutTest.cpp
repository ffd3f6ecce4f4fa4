#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

TEST_CASE("entry layouts are applied with copies, leaf by leaf") {
  PassRun p(
      "HloModule m, entry_computation_layout={(f32[2,3]{0,1}, (f32[4]{0}, f32[2,3]{0,1}))->f32[2,3]{0,1}}\n"
      "ENTRY e {\n t = (f32[4]{0}, f32[2,3]{1,0}) parameter(1)\n g = f32[2,3]{1,0} get-tuple-element(t), index=1\n"
      " p = f32[2,3]{1,0} parameter(0)\n ROOT r = f32[2,3]{1,0} add(g, p)\n}\n");
  CHECK(p.run(applyEntryLayout) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nt = parameter()\ncopy.1.anon = copy(p)\nget-tuple-element.2.anon = "
                    "get-tuple-element(t)\nget-tuple-element.3.anon = get-tuple-element(t)\n"
                    "copy.4.anon = copy(get-tuple-element.3.anon)\n"
                    "tuple.5.anon = tuple(get-tuple-element.2.anon copy.4.anon)\ng = get-tuple-element(tuple.5.anon)\n"
                    "r = add(g copy.1.anon)\nROOT copy.6.anon = copy(r)\n");
  CHECK(p.module->entry()->parameter(0)->shape().toString() == "f32[2,3]{0,1}");
  CHECK(p.module->entry()->root()->shape().toString() == "f32[2,3]{0,1}");
  CHECK(p.run(applyEntryLayout) == PassResult::Unchanged);
}

TEST_CASE("a parameter that is the result") {
  PassRun p("HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}\n"
            "ENTRY e {\n ROOT p = f32[2,3]{1,0} parameter(0)\n}\n");
  CHECK(p.run(applyEntryLayout) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nROOT copy.1.anon = copy(p)\n");
}

TEST_CASE("without a layout in the header nothing happens") {
  PassRun p(entry("p = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[2,3]{1,0} negate(p)"));
  CHECK(p.run(applyEntryLayout) == PassResult::Unchanged);
}
