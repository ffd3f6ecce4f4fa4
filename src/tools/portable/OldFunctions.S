// The program is linked where glibc is newer than where it runs. What glibc gave a new version for no reason that matters
// to us (since 2.34 for moving out of libpthread and libdl, since 2.29 for no longer setting errno in a wrapper) is asked for
// by its first version, which every glibc has. OldGlibc.c has what old ones lack altogether.

.macro first_version name, version
  .symver first_\name, \name@\version
  .globl \name
  .hidden \name
  .type \name, @function
  .section .text.\name, "ax", @progbits
\name:
  endbr64
  jmp *first_\name@GOTPCREL(%rip)
  .size \name, . - \name
.endm

first_version dladdr, GLIBC_2.2.5
first_version dlclose, GLIBC_2.2.5
first_version dlerror, GLIBC_2.2.5
first_version dlopen, GLIBC_2.2.5
first_version dlsym, GLIBC_2.2.5
first_version __pthread_key_create, GLIBC_2.2.5
first_version pthread_attr_setstacksize, GLIBC_2.2.5
first_version pthread_create, GLIBC_2.2.5
first_version pthread_detach, GLIBC_2.2.5
first_version pthread_join, GLIBC_2.2.5
first_version pthread_once, GLIBC_2.2.5
first_version pthread_rwlock_rdlock, GLIBC_2.2.5
first_version pthread_rwlock_unlock, GLIBC_2.2.5
first_version pthread_rwlock_wrlock, GLIBC_2.2.5
first_version pthread_setname_np, GLIBC_2.12
first_version pthread_sigmask, GLIBC_2.2.5
first_version exp, GLIBC_2.2.5
first_version exp2, GLIBC_2.2.5
first_version log, GLIBC_2.2.5
first_version log2, GLIBC_2.2.5
first_version pow, GLIBC_2.2.5

  .section .note.GNU-stack, "", @progbits
