/* Compiles the file that it is given and prints the PTX: from-c FILE.hlo [OPTIONS...] */
#include <hloc.h>

#include <stdio.h>
#include <stdlib.h>

static char *readAll(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  *size = 0;
  if (!file)
    return NULL;
  for (size_t room = 0;;) {
    if (*size == room)
      text = realloc(text, room = room ? 2 * room : 4096);
    const size_t got = fread(text + *size, 1, room - *size, file);
    if (got == 0)
      break;
    *size += got;
  }
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  size_t size;
  char *text = argc > 1 ? readAll(argv[1], &size) : NULL;
  if (!text || hloc_abi_version() < HLOC_ABI_VERSION)
    return 2;
  hloc_compilation *compilation = hloc_compile(argv[1], text, size, (const char *const *)argv + 2, (size_t)argc - 2, NULL);
  fputs(hloc_compilation_messages(compilation), stderr);
  const hloc_bytes ptx = hloc_compilation_ptx(compilation, 0);
  fwrite(ptx.data, 1, ptx.size, stdout);
  const int status = hloc_compilation_status(compilation);
  hloc_compilation_destroy(compilation);
  free(text);
  return status;
}
