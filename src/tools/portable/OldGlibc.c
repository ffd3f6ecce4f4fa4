// What a glibc of 2018 (2.27) lacks and libstdc++, LLVM or the start code of a newer one ask for. All of it is hidden: only
// this program uses it. x86-64 Linux. tests/scripts/static-binary checks that nothing newer is asked for.

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// Start (2.34). The first version leaves it to its caller to run constructors.

typedef int Main(int, char **, char **);
typedef void Initializer(int, char **, char **);

int firstStart(Main *, int, char **, Initializer *, void (*)(void), void (*)(void), void *);
__asm__(".symver firstStart, __libc_start_main@GLIBC_2.2.5");

extern Initializer *__init_array_start[] HIDDEN, *__init_array_end[] HIDDEN;
void _init(void);

static void initialize(int argc, char **argv, char **environment) {
  _init();
  for (Initializer **each = __init_array_start; each != __init_array_end; ++each)
    (*each)(argc, argv, environment);
}

HIDDEN int __libc_start_main(Main *entry, int argc, char **argv, Initializer *init, void (*fini)(void),
                             void (*loaderFini)(void), void *stackEnd) {
  return firstStart(entry, argc, argv, initialize, NULL, loaderFini, stackEnd); // the loader runs destructors
}

// Files (2.33): these were inline functions before. The kernel's structure is glibc's.

HIDDEN int fstatat(int folder, const char *path, struct stat *result, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, result, flags);
}
HIDDEN int stat(const char *path, struct stat *result) { return fstatat(AT_FDCWD, path, result, 0); }
HIDDEN int lstat(const char *path, struct stat *result) {
  return fstatat(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}
HIDDEN int fstat(int file, struct stat *result) { return (int)syscall(SYS_fstat, file, result); }
HIDDEN int stat64(const char *path, struct stat64 *result) { return stat(path, (struct stat *)result); }
HIDDEN int lstat64(const char *path, struct stat64 *result) { return lstat(path, (struct stat *)result); }
HIDDEN int fstat64(int file, struct stat64 *result) { return fstat(file, (struct stat *)result); }
HIDDEN int mknod(const char *path, mode_t mode, dev_t device) {
  return (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, device);
}

// Memory (2.33): what LLVM says of its use in statistics, which wrap around above 4 GiB.

HIDDEN struct mallinfo2 mallinfo2(void) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma clang diagnostic pop
  const struct mallinfo2 wide = {.arena = (unsigned)narrow.arena,
                                 .hblkhd = (unsigned)narrow.hblkhd,
                                 .uordblks = (unsigned)narrow.uordblks,
                                 .fordblks = (unsigned)narrow.fordblks};
  return wide;
}

// Threads. Before 2.32 nobody tells whether there is only one; 2.30 brought waiting by a clock.

HIDDEN char __libc_single_threaded = 0;

HIDDEN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until) {
  enum { billion = 1000000000 };
  struct timespec now, real;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0)
    return EINVAL;
  real.tv_sec += until->tv_sec - now.tv_sec;
  real.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (real.tv_nsec < 0) {
    real.tv_nsec += billion;
    --real.tv_sec;
  } else if (real.tv_nsec >= billion) {
    real.tv_nsec -= billion;
    ++real.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &real);
}

// Randomness (2.36).

HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0)
    value = (uint32_t)getpid() ^ (uint32_t)time(NULL);
  return value;
}

// Exceptions (2.35): the part of the program that holds an address, and where its tables for unwinding are.

struct Found {
  void *place;
  struct dl_find_object *object;
};

static int findSegment(struct dl_phdr_info *part, size_t size, void *data) {
  struct Found *found = data;
  const ElfW(Addr) place = (ElfW(Addr))found->place;
  const ElfW(Phdr) *segment = NULL, *tables = NULL;
  for (int i = 0; i < part->dlpi_phnum; ++i) {
    const ElfW(Phdr) *each = &part->dlpi_phdr[i];
    const ElfW(Addr) begin = part->dlpi_addr + each->p_vaddr;
    if (each->p_type == PT_LOAD && place >= begin && place - begin < each->p_memsz)
      segment = each;
    if (each->p_type == PT_GNU_EH_FRAME)
      tables = each;
  }
  if (!segment || !tables)
    return 0;
  found->object->dlfo_flags = 0;
  found->object->dlfo_map_start = (void *)(part->dlpi_addr + segment->p_vaddr);
  found->object->dlfo_map_end = (char *)found->object->dlfo_map_start + segment->p_memsz;
  found->object->dlfo_link_map = NULL;
  found->object->dlfo_eh_frame = (void *)(part->dlpi_addr + tables->p_vaddr);
  return 1;
}

HIDDEN int _dl_find_object(void *place, struct dl_find_object *result) {
  struct Found found = {place, result};
  return dl_iterate_phdr(findSegment, &found) ? 0 : -1;
}
