#pragma once
// Recursive descent over the characters of a PTX text.

#include "PtxScanner.h"

namespace hloc::ptx {

class Parser : Scanner {
public:
  explicit Parser(DiagnosticEngine &diagnostics) : Scanner(diagnostics) {}
  std::optional<Module> run();

private:
  // PtxDeclarations.cpp: operands and variables
  Operand operand(unsigned depth = 0);
  Operand operandList(Operand::Kind kind, char close, unsigned depth);
  Operand address(unsigned depth);
  Operand named(unsigned depth);
  Variable variable(std::string linkage, std::string space);
  void variableType(Variable &v);
  void initialValue(Variable &v, unsigned depth);
  Initializer initializer();

  // PtxParser.cpp: the module and its functions
  void topLevel();
  void declaration(std::string directive);
  void fileName();
  void alias();
  void skipBraces();
  void function(std::string linkage, bool isEntry);
  std::vector<Variable> parameters();
  void body(Function &f);
  void bodyDirective(Function &f);
  void variables(Function &f, std::string linkage, const std::string &space);
  void location(Function &f);
  void statement(Function &f);
  void labelled(Function &f, std::string label);

  std::string opcode; ///< of the instruction whose operands are read, for messages
  Module module;
};

} // namespace hloc::ptx
