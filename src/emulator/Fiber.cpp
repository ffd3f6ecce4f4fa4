#include "Fiber.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HLOC_SANITIZED_STACKS // the sanitizer knows swapcontext, but not our switch
#endif
#endif
#if defined(__x86_64__) && !defined(HLOC_SANITIZED_STACKS)
#define HLOC_FIBER_ASSEMBLY
#else
#include <ucontext.h>
#endif

#ifdef HLOC_FIBER_ASSEMBLY
// hlocSwitchStack(void **from, void *to): saves what a call preserves, keeps the stack pointer in *from, goes on at
// `to`. The jump (not `ret`) keeps the return predictor in step. A new stack starts at hlocEnterFiber, the fiber in
// rbx.
extern "C" void hlocSwitchStack(void **from, void *to);
extern "C" void hlocEnterFiber();
extern "C" [[gnu::used]] void hlocRunFiber(hloc::emulator::Fiber *fiber) { hloc::emulator::Fiber::run(fiber); }
asm(R"(
.text
.p2align 4
.hidden hlocSwitchStack
.globl hlocSwitchStack
.type hlocSwitchStack, @function
hlocSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size hlocSwitchStack, .-hlocSwitchStack
.hidden hlocEnterFiber
.globl hlocEnterFiber
.type hlocEnterFiber, @function
hlocEnterFiber:
  movq %rbx, %rdi
  callq hlocRunFiber
  ud2
.size hlocEnterFiber, .-hlocEnterFiber
)");
#endif

namespace hloc::emulator {

struct Fiber::Contexts {
#ifdef HLOC_FIBER_ASSEMBLY
  void *inside = nullptr, *outside = nullptr; ///< stack pointers
#else
  ucontext_t inside = {}, outside = {};
#endif
};

Fiber::Fiber(size_t stackBytes) : contexts(std::make_unique<Contexts>()) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  mappedBytes = (stackBytes + page - 1) / page * page + page;
  void *memory = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return;
  mprotect(memory, page, PROT_NONE);
  stack = memory;
}

void Fiber::run(Fiber *fiber) {
  fiber->entry(fiber->argument);
  fiber->suspend();
}

#ifdef HLOC_FIBER_ASSEMBLY

void Fiber::start(void (*function)(void *), void *with) {
  entry = function;
  argument = with;
  auto top = reinterpret_cast<uintptr_t>(stack) + mappedBytes;
  auto *words = reinterpret_cast<uintptr_t *>(top) - 9; // six registers, where to go on, alignment to 16
  words[4] = reinterpret_cast<uintptr_t>(this);         // rbx
  words[6] = reinterpret_cast<uintptr_t>(&hlocEnterFiber);
  words[0] = words[1] = words[2] = words[3] = words[5] = words[7] = words[8] = 0;
  contexts->inside = words;
}

void Fiber::resume() { hlocSwitchStack(&contexts->outside, contexts->inside); }
void Fiber::suspend() { hlocSwitchStack(&contexts->inside, contexts->outside); }

#else

static void enter(unsigned high, unsigned low) {
  Fiber::run(reinterpret_cast<Fiber *>(uintptr_t(uint64_t(high) << 32 | low)));
}

void Fiber::start(void (*function)(void *), void *with) {
  entry = function;
  argument = with;
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  getcontext(&contexts->inside);
  contexts->inside.uc_stack.ss_sp = static_cast<std::byte *>(stack) + page;
  contexts->inside.uc_stack.ss_size = mappedBytes - page;
  contexts->inside.uc_link = nullptr;
  uint64_t self = reinterpret_cast<uintptr_t>(this);
  makecontext(&contexts->inside, reinterpret_cast<void (*)()>(&enter), 2, unsigned(self >> 32), unsigned(self));
}

void Fiber::resume() { swapcontext(&contexts->outside, &contexts->inside); }
void Fiber::suspend() { swapcontext(&contexts->inside, &contexts->outside); }

#endif

Fiber::~Fiber() {
  if (stack)
    munmap(stack, mappedBytes);
}

} // namespace hloc::emulator
