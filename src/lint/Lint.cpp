#include "hloc/lint/Lint.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/support/Check.h"
#include "lint/Rules.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc::lint {

namespace {

constexpr RuleRow table[] = {
#define HLOC_LINT_RULE(name, text, severity, summary) {Rule::name, text, Severity::severity, summary},
#include "hloc/lint/LintRules.def"
};

/// Looks for what a rule is about. Several rules may share one.
using Search = void (*)(const KernelContext &);
constexpr Search searches[] = {findCasLoops,      findScalarAccesses, findLocalMemory, findAccidentalDoubles,
                               findSlowDivisions, findSystemScopes,   checkResources};

} // namespace

llvm::ArrayRef<RuleRow> rules() { return table; }

const RuleRow &row(Rule rule) { return table[size_t(rule)]; }

std::optional<Rule> findRule(llvm::StringRef name) {
  for (const RuleRow &row : table)
    if (row.name == name)
      return row.rule;
  return std::nullopt;
}

void KernelContext::report(Rule rule, const CodeInstr &at, std::string message) const {
  Finding &finding = findings.emplace_back();
  finding = {rule, code.function.name, at.text->range, std::move(message), ""};
  if (at.line && at.file < code.module.files.size())
    finding.source = fmt::format("{}:{}", code.module.files[at.file], at.line);
}

void KernelContext::report(Rule rule, std::string message) const {
  findings.push_back({rule, code.function.name, code.function.where, std::move(message), ""});
}

std::vector<Finding> lint(const ptx::Module &module, const std::map<std::string, KernelFacts> &facts,
                          const LintOptions &options) {
  std::vector<Finding> findings;
  for (const ptx::Function &function : module.functions) {
    if (!function.hasBody)
      continue;
    KernelCode code(module, function);
    auto known = facts.find(function.name);
    const KernelFacts nothing;
    KernelContext context{code, known == facts.end() ? nothing : known->second, options.target, findings};
    for (Search search : searches)
      search(context);
  }
  llvm::erase_if(findings, [&](const Finding &finding) { return llvm::is_contained(options.disabled, finding.rule); });
  llvm::stable_sort(findings, [](const Finding &a, const Finding &b) { return a.where.begin < b.where.begin; });
  return findings;
}

std::string printJson(llvm::ArrayRef<Finding> findings, const SourceFile &ptx) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeArray("findings", [&] {
      for (const Finding &finding : findings)
        json.object([&] {
          json.attribute("rule", row(finding.rule).name);
          json.attribute("severity", row(finding.rule).severity == Severity::Error ? "error" : "warning");
          json.attribute("kernel", finding.kernel);
          json.attribute("line", ptx.lineColumn(finding.where.begin).line);
          json.attribute("text", ptx.text().slice(finding.where.begin, finding.where.end));
          json.attribute("message", finding.message);
          if (!finding.source.empty())
            json.attribute("source", finding.source);
        });
    });
  });
  os << "\n";
  return text;
}

} // namespace hloc::lint
