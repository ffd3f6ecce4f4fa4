/* hloc as a library: HLO text in, PTX, machine code and their description out, in memory.
 *
 *   const char *options[] = {"--target=sm_80,sm_90", "--emit=cubin"};
 *   hloc_compilation *compilation = hloc_compile("gelu.hlo", text, strlen(text), options, 2, NULL);
 *   if (hloc_compilation_status(compilation) == HLOC_OK)
 *     load(hloc_compilation_cubin(compilation, 0));
 *   else
 *     fputs(hloc_compilation_messages(compilation), stderr);
 *   hloc_compilation_destroy(compilation);
 *
 * C99. Any number of threads may call at once. Nothing is printed, no call ends the process, and nothing is thrown: any
 * bytes as text give a status and messages. The process's environment is read for where NVIDIA's tools are, as by the
 * program. Functions of one object are for one thread at a time, but for hloc_control_cancel. What a function gives
 * lives as long as the object that it was asked of. Objects that are null are taken as nothing: a destroy of it does
 * nothing.
 *
 * hloc.hpp has the same for C++. The program `hloc` is hloc_main of this library. */
#ifndef HLOC_H
#define HLOC_H

#include <stddef.h>

#if defined(HLOC_STATIC_LIBRARY)
#define HLOC_API
#else
#define HLOC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Functions are added, never changed: a program built with one version of this header runs with every later library. */
#define HLOC_ABI_VERSION 1
/* HLOC_ABI_VERSION of the library. */
HLOC_API int hloc_abi_version(void);
/* `0.1.0` */
HLOC_API const char *hloc_version(void);

/* How a compilation ended: the exit codes of the program. */
typedef enum hloc_status {
  HLOC_OK = 0,
  HLOC_WRONG_INPUT = 1,     /* the text is no HLO, or wrong */
  HLOC_WRONG_OPTION = 2,    /* an option is */
  HLOC_UNSUPPORTED = 3,     /* recognised, but not supported: the message says which op or feature, and where */
  HLOC_DEFECT = 4,          /* --prove refuted a property of a kernel */
  HLOC_INTERNAL_ERROR = 70, /* a bug in hloc. Memory that the compilation held is lost. */
  HLOC_CANCELLED = 130
} hloc_status;

/* Bytes, and a null after them that `size` does not count. */
typedef struct hloc_bytes {
  const char *data;
  size_t size;
} hloc_bytes;

/* What a compilation that goes on can be told, and what it tells. */
typedef struct hloc_control hloc_control;
/* `done` of `all` kernels of one target are compiled. Called by the threads of a compilation, several at once; it must
 * not call functions of the compilation, and may call hloc_control_cancel. */
typedef void hloc_progress(void *data, size_t done, size_t all);

HLOC_API hloc_control *hloc_control_create(void);
/* Not while a compilation has it. */
HLOC_API void hloc_control_destroy(hloc_control *control);
/* For compilations that begin later. Null: nobody is told. */
HLOC_API void hloc_control_on_progress(hloc_control *control, hloc_progress *progress, void *data);
/* Compilations with this control end soon, those that begin later at once: between two kernels, or two stages. From any
 * thread. */
HLOC_API void hloc_control_cancel(hloc_control *control);

typedef struct hloc_compilation hloc_compilation;

/* Compiles the HLO module in the `size` bytes at `text`, which is called `name` in messages. `options` are words of the
 * command line with their values behind `=`: --target, --emit (ptx or cubin), --jobs, -O, --line-info, --keep-going,
 * --allow-external, --only, --prove, --fast-math, --fusion, --f32-dots, --softmax, --dots, --convolutions, --tile,
 * --force,
 * --disable-pass, --cuda-path, --ptxas, --libdevice, --assembler; what the program does with them is in
 * docs/reference/options.md. `control` may be null. Never null itself; destroy it. */
HLOC_API hloc_compilation *hloc_compile(const char *name, const char *text, size_t size, const char *const *options,
                                        size_t num_options, hloc_control *control);
HLOC_API void hloc_compilation_destroy(hloc_compilation *compilation);

HLOC_API hloc_status hloc_compilation_status(const hloc_compilation *compilation);
/* All diagnostics as the program prints them, with the lines they are about; empty if there are none. */
HLOC_API const char *hloc_compilation_messages(const hloc_compilation *compilation);

/* Targets that were compiled for, in the order of --target; after an error those before it. */
HLOC_API size_t hloc_compilation_num_targets(const hloc_compilation *compilation);
/* `sm_90`. For `target` out of range these give null and no bytes. */
HLOC_API const char *hloc_compilation_target(const hloc_compilation *compilation, size_t target);
HLOC_API hloc_bytes hloc_compilation_ptx(const hloc_compilation *compilation, size_t target);
/* Machine code; no bytes without --emit=cubin, or if the module has no kernel. */
HLOC_API hloc_bytes hloc_compilation_cubin(const hloc_compilation *compilation, size_t target);
/* JSON: buffers, steps, launches; what hloc_launch.h executes. */
HLOC_API hloc_bytes hloc_compilation_manifest(const hloc_compilation *compilation, size_t target);

/* One error, warning or remark, or a note about one. */
typedef struct hloc_diagnostic hloc_diagnostic;
typedef enum hloc_severity { HLOC_ERROR = 0, HLOC_WARNING = 1, HLOC_REMARK = 2, HLOC_NOTE = 3 } hloc_severity;

HLOC_API size_t hloc_compilation_num_diagnostics(const hloc_compilation *compilation);
/* Null if out of range. */
HLOC_API const hloc_diagnostic *hloc_compilation_diagnostic(const hloc_compilation *compilation, size_t index);
HLOC_API hloc_severity hloc_diagnostic_severity(const hloc_diagnostic *diagnostic);
/* `shape-mismatch`; empty for notes. */
HLOC_API const char *hloc_diagnostic_kind(const hloc_diagnostic *diagnostic);
HLOC_API const char *hloc_diagnostic_message(const hloc_diagnostic *diagnostic);
/* The name given to the text; empty if it is about no place in one. */
HLOC_API const char *hloc_diagnostic_file(const hloc_diagnostic *diagnostic);
/* From 1, in lines and bytes; 0 if it is about no place. */
HLOC_API size_t hloc_diagnostic_line(const hloc_diagnostic *diagnostic);
HLOC_API size_t hloc_diagnostic_column(const hloc_diagnostic *diagnostic);
HLOC_API size_t hloc_diagnostic_num_notes(const hloc_diagnostic *diagnostic);
/* Null if out of range. */
HLOC_API const hloc_diagnostic *hloc_diagnostic_note(const hloc_diagnostic *diagnostic, size_t index);

/* The whole program, with its arguments: it reads and writes files, prints, and may end the process. Once in a process.
 * Gives the exit code. */
HLOC_API int hloc_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
