/* jitrun_kernel.h - users' own kernels: compiled from a page of text, run on every device, with the same bits on each.
 *
 * Everything here follows jitrun.h: ERRORS, MEMORY, and STRUCTS AND VERSIONS. docs/kernels.md describes the language.
 *
 *     jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "cpu"), &err);
 *     jit_kernel *k = jit_kernel_open(c, &JIT_KERNEL_OPTIONS(.path = "saxpy.jk", .constants = "n=1000"), &err);
 *     jit_launch *l = jit_launch_open(k, &err);
 *     jit_launch_set_real(l, 0, &(double){ 1.5 }, &err);
 *     jit_launch_set_memory(l, 1, x, sizeof x, &err);
 *     jit_launch_set_memory(l, 2, y, sizeof y, &err);
 *     jit_launch_run(l, &err);
 *
 * THREADS. All of it may be called from any thread. Launches of one jit_compute take turns, as do copies; each uses all
 * of its threads. One jit_launch belongs to one thread at a time.
 */
#ifndef JITRUN_KERNEL_H
#define JITRUN_KERNEL_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- where kernels run */

/* A device, its threads, and the code that was made for it. */
typedef struct jit_compute jit_compute;
typedef struct jit_compute_options {
	size_t size;
	const char *device;    /* as jit_model_options has it; NULL: "cpu" */
	const char *isa;       /* the same; NULL: the best this CPU has */
	int threads;           /* 0: one per core this process may use */
	int sealed;            /* non-zero: no code is generated, all of it must be in cache_dir, which is only read */
	const char *cache_dir; /* where code is kept: the same directories and packs as jit_model_options has */
	uint64_t cache_limit;  /* bytes a directory may hold; 0: 256 MiB */
	const char *dump_ir,
		*dump_asm;   /* files that receive the IR and the machine code of each kernel made, or NULL */
	const char *jitdump; /* directory for jit-PID.dump, which perf inject --jit reads; or NULL */
	int perf_map;        /* non-zero: /tmp/perf-PID.map for Linux perf */
	int gdb;             /* non-zero: kernels are entered into the list gdb reads */
	jit_cancel *cancel;  /* ends a launch that runs, between two parts of it; borrowed; NULL: nothing does */
	const char *trace;   /* file that receives a timeline of launches and of the share of each thread or card, in
	                        Chrome's trace format, until jit_compute_written() or else the end; or NULL */
} jit_compute_options;
#define JIT_COMPUTE_OPTIONS(...) JIT_STRUCT(jit_compute_options, __VA_ARGS__)

/* options NULL: all defaults. */
jit_compute *jit_compute_open(const jit_compute_options *options, jit_error *err);
/* Before it is closed: whether the files of perf_map, dump_ir, dump_asm, jitdump and trace could be written whole. */
int jit_compute_written(jit_compute *c, jit_error *err);
/* When its kernels, buffers and launches are closed. */
void jit_compute_close(jit_compute *c);

typedef struct jit_compute_info {
	size_t size;
	const char *device, *target; /* "sim:gfx1100", "gfx1100"; live as long as the jit_compute */
	int threads;
	int in_place; /* non-zero: kernels work on the caller's memory; else it is copied to the device and back */
	/* Kernels that came from each source, and what that took. */
	uint64_t generated, from_disk, from_pack, generated_ns, from_disk_ns, code_bytes;
} jit_compute_info;
#define JIT_COMPUTE_INFO() JIT_STRUCT(jit_compute_info, )
int jit_compute_get_info(const jit_compute *c, jit_compute_info *out, jit_error *err);

/* ---- kernels */

typedef struct jit_kernel jit_kernel;
typedef struct jit_kernel_options {
	size_t size;
	const char *source;    /* the text; NULL: what the file `path` contains */
	size_t n;              /* its bytes; 0: up to its end */
	const char *path;      /* the file's name, also in messages; NULL: "kernel" */
	const char *kernel;    /* which kernel of the text; NULL: the only one */
	const char *constants; /* "n=1000 scale=0.5", separated by blanks or commas; NULL: none */
	int check;             /* non-zero: a subscript out of range is an error that names line, array and index */
	int reserved;          /* 0 */
	char *messages;        /* n_messages bytes that receive all messages about the text, each with its line and a
	                          caret; NULL: the jit_error has the first one alone */
	size_t n_messages;
} jit_kernel_options;
#define JIT_KERNEL_OPTIONS(...) JIT_STRUCT(jit_kernel_options, __VA_ARGS__)

/* Compiles a kernel, or finds its code. The options are copied. JIT_ERROR_FORMAT: the text is not right, or a constant
 * is missing or wrong. */
jit_kernel *jit_kernel_open(jit_compute *c, const jit_kernel_options *options, jit_error *err);
/* When its launches are closed. */
void jit_kernel_close(jit_kernel *k);

enum {
	JIT_TYPE_BOOL,
	JIT_TYPE_F32,
	JIT_TYPE_F64,
	JIT_TYPE_I32,
	JIT_TYPE_U32,
	JIT_TYPE_I64,
	JIT_TYPE_U64,
	JIT_TYPE_F16,
	JIT_TYPE_BF16,
	JIT_TYPE_I8,
	JIT_TYPE_U8,
	JIT_TYPE_I16,
	JIT_TYPE_U16
};
enum { JIT_SCALAR, JIT_IN, JIT_OUT, JIT_INOUT };
typedef struct jit_parameter {
	size_t size;
	const char *name; /* lives as long as the kernel */
	int type;         /* JIT_TYPE_F32 and so on: of the scalar, or of an array's elements */
	int access;       /* JIT_SCALAR, or what is done with an array */
	int dims;         /* 1 to 4; of a scalar 0 */
	int reserved;     /* 0 */
	uint64_t extent[4], elements, bytes;
} jit_parameter;
#define JIT_PARAMETER() JIT_STRUCT(jit_parameter, )
size_t jit_kernel_parameters(const jit_kernel *k);
/* By number from 0. */
int jit_kernel_parameter(const jit_kernel *k, size_t number, jit_parameter *out, jit_error *err);
/* The number of the parameter of that name; -1: no parameter has it. */
int jit_kernel_find(const jit_kernel *k, const char *name);

enum { JIT_RUNS_NATIVE, JIT_RUNS_INTERPRETED };
enum { JIT_CODE_GENERATED, JIT_CODE_MEMORY, JIT_CODE_DISK, JIT_CODE_PACK };
/* How a kernel is run on its device. One that is refused does not open, and the error says why. */
typedef struct jit_kernel_report {
	size_t size;
	const char *name, *key; /* key: what it is called in a cache; both live as long as the kernel */
	int runs;               /* JIT_RUNS_NATIVE, or JIT_RUNS_INTERPRETED, which only the device ref does */
	int code;               /* where the code came from: JIT_CODE_GENERATED and so on; interpreted: 0 */
	uint64_t code_ns, code_bytes;
	uint64_t units; /* work units of a launch */
	/* What a launch reads and writes at least, each byte once, and its arithmetic operations. */
	uint64_t bytes_read, bytes_written, operations;
	uint64_t launches, last_ns; /* that ended well, of all jit_launch; how long the last of them took */
	const char *
		tuned; /* "block=128": the constants that were found by tuning; "": none; lives as long as the kernel */
} jit_kernel_report;
#define JIT_KERNEL_REPORT() JIT_STRUCT(jit_kernel_report, )
int jit_kernel_get_report(const jit_kernel *k, jit_kernel_report *out, jit_error *err);

/* ---- buffers: memory of the device, which stays there from launch to launch */

typedef struct jit_buffer jit_buffer;
/* Zeroed. */
jit_buffer *jit_buffer_open(jit_compute *c, uint64_t bytes, jit_error *err);
void jit_buffer_close(jit_buffer *b);
uint64_t jit_buffer_bytes(const jit_buffer *b);
/* Copies `bytes` bytes to or from the buffer's byte `at` on. */
int jit_buffer_write(jit_buffer *b, uint64_t at, const void *from, uint64_t bytes, jit_error *err);
int jit_buffer_read(const jit_buffer *b, uint64_t at, void *to, uint64_t bytes, jit_error *err);
/* Where it is, while no launch runs. NULL: the host does not reach it; copy. */
void *jit_buffer_memory(jit_buffer *b);

/* ---- launches */

/* A kernel and its arguments; may be run any number of times. Every parameter must have been given before it runs.
 * Memory that a launch writes must not overlap that of another of its arguments. */
typedef struct jit_launch jit_launch;
jit_launch *jit_launch_open(jit_kernel *k, jit_error *err);
void jit_launch_close(jit_launch *l);
/* An array: a buffer of the kernel's jit_compute, from its byte `at` on. Borrowed until another is given. */
int jit_launch_set_buffer(jit_launch *l, size_t parameter, jit_buffer *b, uint64_t at, jit_error *err);
/* An array: `bytes` bytes of the caller's memory, at least as many as the array has. Where jit_compute_info.in_place is
 * set, kernels work on it; else each run copies it to the device, and what may have been written back. */
int jit_launch_set_memory(jit_launch *l, size_t parameter, void *p, uint64_t bytes, jit_error *err);
/* A scalar. JIT_ERROR_ARGUMENT where its type does not have the value: an integer's fraction, or its range; floats are
 * rounded to nearest. value: an address, for languages that call C without a compiler. */
int jit_launch_set_real(jit_launch *l, size_t parameter, const double *value, jit_error *err);
int jit_launch_set_integer(jit_launch *l, size_t parameter, int64_t value, jit_error *err);
/* A scalar's bits, in the low ones: for u64, and for NaN with a payload. */
int jit_launch_set_bits(jit_launch *l, size_t parameter, uint64_t bits, jit_error *err);
/* Returns when it is done. JIT_ERROR_CANCELLED: some of it was done, and arrays have values of both. With
 * jit_kernel_options.check JIT_ERROR_ARGUMENT: a subscript was out of range, and the message says which. */
int jit_launch_run(jit_launch *l, jit_error *err);

/* TUNING. A constant that the text lists as `tune block in {64, 128, 256};` changes no bit of a result, only how fast
 * it comes. This tries every value of those that jit_kernel_options.constants leaves open, on copies of the arrays, and
 * keeps the fastest for this processor and device in the cache's first directory. Kernels that are opened later take
 * it; this launch stays as it is. JIT_ERROR_UNSUPPORTED: a value changes bits, which is a fault of jitrun. */
int jit_launch_tune(jit_launch *l, jit_error *err);

/* ---- which device */

/* What is to be done: bytes that the device's memory moves, arithmetic operations, bytes that are copied to the device
 * and back, and bytes that must have room there. */
typedef struct jit_work {
	size_t size;
	uint64_t bytes, operations, copied, memory;
} jit_work;
#define JIT_WORK(...) JIT_STRUCT(jit_work, __VA_ARGS__)

/* How long a device will take: the greater of its memory's and its arithmetic's time, and the copies', and the start of
 * a launch. bandwidth, arithmetic, link: peaks in bytes, operations and copied bytes a second; of the CPU measured, of
 * a card as its driver tells. Kernels are expected to reach a part of the first two. link 0: nothing is copied. */
typedef struct jit_prediction {
	size_t size;
	char device[32];
	double seconds, memory_seconds, arithmetic_seconds, copy_seconds, start_seconds;
	double bandwidth, arithmetic, link;
	char why_not[512]; /* empty: it can be chosen; else one sentence, and no numbers */
} jit_prediction;
#define JIT_PREDICTION() JIT_STRUCT(jit_prediction, )
/* Of the device with that number (jit_device_get_info). */
int jit_device_predict(size_t number, const jit_work *work, jit_prediction *out, jit_error *err);
/* Of the device that is done first. */
int jit_device_choose(const jit_work *work, jit_prediction *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
