// The program without a dynamic loader, for musl: it opens no libraries of NVIDIA's, and says so.

#include <stddef.h>

void *dlopen(const char *name, int flags) { return NULL; }
void *dlsym(void *library, const char *name) { return NULL; }
int dlclose(void *library) { return 0; }
char *dlerror(void) { return "this hloc is linked statically and opens no libraries"; }
