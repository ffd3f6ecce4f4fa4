#include "lint/KernelCode.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc::lint {

using Kind = ptx::Operand::Kind;

bool CodeInstr::has(llvm::StringRef part) const { return llvm::is_contained(text->parts, part); }

unsigned typeBits(llvm::StringRef type) {
  if (type == "pred")
    return 1;
  if (type == "tf32")
    return 32;
  unsigned lanes = 1;
  if (size_t x = type.rfind('x'); x != llvm::StringRef::npos && !type.substr(x + 1).getAsInteger(10, lanes))
    type = type.take_front(x);
  if (type.starts_with("e4m3") || type.starts_with("e5m2"))
    return 8 * lanes;
  unsigned bits = 0;
  bool isType = (type.consume_front("bf") || type.consume_front("b") || type.consume_front("u") ||
                 type.consume_front("s") || type.consume_front("f")) &&
                !type.getAsInteger(10, bits);
  return isType && bits <= 128 ? bits * lanes : 0;
}

llvm::StringRef spaceOf(const CodeInstr &instr) {
  for (llvm::StringRef space : {"global", "shared", "local", "param", "const"})
    for (const std::string &part : instr.text->parts)
      if (llvm::StringRef(part).split(':').first == space) // shared::cta
        return space;
  return "";
}

bool isAsyncCopy(const CodeInstr &instr) {
  const auto &operands = instr.text->operands;
  return instr.name() == "cp" && instr.has("async") && operands.size() > 2 && operands[1].kind == Kind::Address &&
         operands[2].kind == Kind::Integer;
}

unsigned bytesOf(const CodeInstr &instr) {
  if (isAsyncCopy(instr))
    return unsigned(instr.text->operands[2].value);
  if (instr.name() == "ldmatrix" || instr.name() == "stmatrix")
    return 4 * (instr.has("x4") ? 4 : instr.has("x2") ? 2 : 1);
  unsigned lanes = instr.has("v8") ? 8 : instr.has("v4") ? 4 : instr.has("v2") ? 2 : 1;
  return typeBits(instr.type()) / 8 * lanes;
}

bool isResult(const ptx::Instruction &instr, size_t operand) {
  static constexpr llvm::StringLiteral without[] = {"st",
                                                    "red",
                                                    "bra",
                                                    "brx",
                                                    "bar",
                                                    "barrier",
                                                    "ret",
                                                    "exit",
                                                    "trap",
                                                    "membar",
                                                    "fence",
                                                    "prefetch",
                                                    "prefetchu",
                                                    "cp",
                                                    "pmevent",
                                                    "brkpt",
                                                    "stmatrix",
                                                    "nanosleep",
                                                    "discard",
                                                    "multimem",
                                                    "applypriority",
                                                    "griddepcontrol",
                                                    "setmaxnreg",
                                                    "stackrestore"};
  if (instr.operands.empty() || operand > 0)
    return false;
  llvm::StringRef name = instr.parts.front();
  if (name == "call") // call (results), function, (arguments)
    return instr.operands.front().kind == Kind::List && instr.operands.size() > 1;
  if (name == "wmma" && instr.parts.size() > 1 && instr.parts[1] == "store")
    return false;
  // A barrier that gathers something writes it.
  bool gathers = (name == "bar" || name == "barrier") && llvm::is_contained(instr.parts, "red");
  return gathers || !llvm::is_contained(without, name);
}

KernelCode::KernelCode(const ptx::Module &module, const ptx::Function &function) : module(module), function(function) {
  for (const ptx::Variable &variable : module.variables)
    variables[variable.name] = &variable;
  for (const ptx::Variable &parameter : function.parameters)
    variables[parameter.name] = &parameter;
  readText();
  connectBlocks();
  writers.resize(registers.size());
  readers.resize(registers.size());
  for (auto [i, instr] : llvm::enumerate(instrs)) {
    for (uint32_t result : instr.results)
      writers[result].push_back(uint32_t(i));
    for (uint32_t read : instr.reads)
      if (readers[read].empty() || readers[read].back() != i)
        readers[read].push_back(uint32_t(i));
  }
  findLoops();
}

uint32_t KernelCode::findRegister(llvm::StringRef name) const {
  auto found = registers.find(name);
  return found == registers.end() ? none : found->second;
}

bool KernelCode::isIn(uint32_t instr, uint32_t loop) const {
  for (uint32_t inner = loopOf(instr); inner != none; inner = loops[inner].parent)
    if (inner == loop)
      return true;
  return false;
}

void KernelCode::addNames(const ptx::Operand &operand, llvm::SmallVectorImpl<uint32_t> &to) {
  bool isName = operand.kind == ptx::Operand::Kind::Name || operand.kind == ptx::Operand::Kind::Address;
  if (isName && !operand.name.empty() && !variables.contains(operand.name))
    to.push_back(registers.try_emplace(operand.name, uint32_t(registers.size())).first->second);
  for (const ptx::Operand &element : operand.elements)
    addNames(element, to);
}

void KernelCode::readOperands(CodeInstr &instr) {
  const ptx::Instruction &text = *instr.text;
  if (!text.guard.empty())
    instr.reads.push_back(registers.try_emplace(text.guard, uint32_t(registers.size())).first->second);
  if (instr.name() == "bra" || instr.name() == "brx")
    return;
  for (auto [i, operand] : llvm::enumerate(text.operands)) {
    if (isResult(text, i) && operand.kind != ptx::Operand::Kind::Address)
      addNames(operand, instr.results);
    else
      addNames(operand, instr.reads);
  }
}

void KernelCode::readText() {
  uint32_t file = 0, line = 0, scope = 0;
  outer = {0};
  auto startBlock = [&] {
    if (blocks.empty() || blocks.back().begin != instrs.size()) {
      if (!blocks.empty())
        blocks.back().end = uint32_t(instrs.size());
      blocks.push_back({uint32_t(instrs.size()), uint32_t(instrs.size()), {}, none});
    }
  };
  startBlock();
  for (const ptx::Statement &statement : function.body) {
    switch (statement.kind) {
    case ptx::Statement::Kind::Label:
      startBlock();
      labels[statement.label].push_back({scope, uint32_t(blocks.size() - 1)});
      break;
    case ptx::Statement::Kind::Targets:
      targets[statement.label] = &statement.names;
      break;
    case ptx::Statement::Kind::Location:
      file = statement.location[0];
      line = statement.location[1];
      break;
    case ptx::Statement::Kind::Variable:
      if (statement.variable.space != "reg")
        variables[statement.variable.name] = &statement.variable;
      break;
    case ptx::Statement::Kind::Instruction: {
      CodeInstr instr;
      instr.text = &statement.instruction;
      instr.block = uint32_t(blocks.size() - 1);
      instr.file = file;
      instr.line = line;
      readOperands(instr);
      bool ends = llvm::is_contained({"bra", "brx", "ret", "exit", "trap"}, instr.name());
      instrs.push_back(std::move(instr));
      scopesOf.push_back(scope);
      if (ends)
        startBlock();
      break;
    }
    case ptx::Statement::Kind::Open:
      outer.push_back(scope);
      scope = uint32_t(outer.size() - 1);
      break;
    case ptx::Statement::Kind::Close:
      scope = outer[scope];
      break;
    case ptx::Statement::Kind::Directive:
      break;
    }
  }
  blocks.back().end = uint32_t(instrs.size());
}

void KernelCode::connectBlocks() {
  // The label of the innermost scope that has one.
  auto connect = [&](CodeBlock &block, llvm::StringRef label) {
    auto found = labels.find(label);
    if (found == labels.end())
      return;
    for (uint32_t scope = scopesOf[block.end - 1];; scope = outer[scope]) {
      for (auto [own, target] : found->second)
        if (own == scope)
          return block.successors.push_back(target);
      if (scope == 0)
        return;
    }
  };
  for (auto [i, block] : llvm::enumerate(blocks)) {
    bool fallsThrough = true;
    if (block.begin != block.end) {
      const ptx::Instruction &last = *instrs[block.end - 1].text;
      llvm::StringRef name = last.parts.front();
      if (name == "bra" && !last.operands.empty())
        connect(block, last.operands.front().name);
      if (name == "brx" && last.operands.size() > 1)
        if (auto found = targets.find(last.operands[1].name); found != targets.end())
          for (const std::string &label : *found->second)
            connect(block, label);
      fallsThrough = !last.guard.empty() || !llvm::is_contained({"bra", "brx", "ret", "exit", "trap"}, name);
    }
    if (fallsThrough && i + 1 < blocks.size())
      block.successors.push_back(uint32_t(i + 1));
  }
}

namespace {

/// Tarjan's strongly connected components of some blocks, without edges into one of them. Not recursive.
class Components {
public:
  Components(const std::vector<CodeBlock> &blocks)
      : blocks(blocks), place(blocks.size(), 0), lowest(blocks.size(), 0), member(blocks.size(), 0),
        onStack(blocks.size(), false) {}

  /// `found(component)` for each with a cycle.
  template <typename Found> void visit(llvm::ArrayRef<uint32_t> among, uint32_t withoutEdgesTo, const Found &found) {
    ++round;
    for (uint32_t block : among) {
      member[block] = round;
      place[block] = 0;
    }
    header = withoutEdgesTo;
    next = 0;
    for (uint32_t block : among)
      if (!place[block])
        search(block, found);
  }

private:
  struct Frame {
    uint32_t block, edge;
  };

  void enter(uint32_t block, std::vector<Frame> &frames) {
    place[block] = lowest[block] = ++next;
    stack.push_back(block);
    onStack[block] = true;
    frames.push_back({block, 0});
  }

  template <typename Found> void search(uint32_t root, const Found &found) {
    std::vector<Frame> frames;
    enter(root, frames);
    while (!frames.empty()) {
      auto &[block, edge] = frames.back();
      if (edge < blocks[block].successors.size()) {
        uint32_t to = blocks[block].successors[edge++];
        if (member[to] != round || to == header)
          continue;
        if (!place[to])
          enter(to, frames);
        else if (onStack[to])
          lowest[block] = std::min(lowest[block], place[to]);
        continue;
      }
      uint32_t done = block;
      frames.pop_back();
      if (!frames.empty())
        lowest[frames.back().block] = std::min(lowest[frames.back().block], lowest[done]);
      if (lowest[done] == place[done])
        pop(done, found);
    }
  }

  template <typename Found> void pop(uint32_t root, const Found &found) {
    std::vector<uint32_t> component;
    uint32_t block;
    do {
      block = stack.back();
      stack.pop_back();
      onStack[block] = false;
      component.push_back(block);
    } while (block != root);
    if (component.size() > 1 || (root != header && llvm::is_contained(blocks[root].successors, root))) {
      llvm::sort(component);
      found(std::move(component));
    }
  }

  const std::vector<CodeBlock> &blocks;
  std::vector<uint32_t> place, lowest; ///< 0: not reached
  std::vector<uint32_t> member;        ///< of the round
  std::vector<bool> onStack;
  std::vector<uint32_t> stack;
  uint32_t round = 0, header = none, next = 0;
};

} // namespace

void KernelCode::findLoops() {
  constexpr unsigned maxDepth = 32; // deeper nests are one loop: every level looks at all of its blocks again
  std::vector<uint32_t> all(blocks.size());
  for (uint32_t i = 0; i < all.size(); ++i)
    all[i] = i;
  std::vector<llvm::SmallVector<uint32_t, 2>> predecessors(blocks.size());
  for (auto [i, block] : llvm::enumerate(blocks))
    for (uint32_t to : block.successors)
      predecessors[to].push_back(uint32_t(i));
  Components components(blocks);
  auto search = [&](llvm::ArrayRef<uint32_t> among, uint32_t parent) {
    components.visit(among, parent == none ? none : loops[parent].header, [&](std::vector<uint32_t> component) {
      CodeLoop loop;
      loop.parent = parent;
      loop.depth = parent == none ? 1 : loops[parent].depth + 1;
      auto isEntered = [&](uint32_t block) {
        return llvm::any_of(predecessors[block], [&](uint32_t from) {
          return !std::binary_search(component.begin(), component.end(), from);
        });
      };
      auto entered = llvm::find_if(component, isEntered);
      loop.header = entered == component.end() ? component.front() : *entered;
      for (uint32_t block : component)
        blocks[block].loop = uint32_t(loops.size());
      loop.blocks = std::move(component);
      loops.push_back(std::move(loop));
    });
  };
  search(all, none);
  for (uint32_t i = 0; i < loops.size(); ++i)
    if (loops[i].depth < maxDepth)
      search(std::vector<uint32_t>(loops[i].blocks), i);
}

} // namespace hloc::lint
