/* tests/graph/onnx_cases.h - ONNX's backend node tests: their archive, and running one of them. */
#ifndef TESTS_ONNX_CASES_H
#define TESTS_ONNX_CASES_H

#include "graph/eval.h"
#include "loaders/onnx/onnx.h"

struct archive_file {
	const char *name; /* in the archive's bytes */
	const uint8_t *p;
	size_t n;
};
struct archive {
	uint8_t *bytes;
	struct archive_file *file;
	size_t files;
};
/* Unpacks a .tar.xz with xz; false: there is none, or it fails. Files are in ascending order of their names. */
bool archive_read(struct archive *a, const char *path);
void archive_free(struct archive *a);
const struct archive_file *archive_find(const struct archive *a, const char *name);

/* Computes a graph: the interpreter, or what is compared with it. */
typedef bool onnx_runner(const struct tensor_graph *g, const struct tensor *const in[], struct tensor out[],
                         struct error *err);

enum case_result { CASE_PASSED, CASE_REFUSED, CASE_WRONG };
struct case_outcome {
	enum case_result result;
	unsigned known; /* inputs whose values were given to the import, as shapes depend on them */
	char text[600]; /* why it is refused, or what is wrong */
};
/* All data sets of node/NAME. */
struct case_outcome case_run(const struct archive *a, const char *name, double rtol, double atol, onnx_runner *run);

/* Whether each element is within atol + rtol * |expected|; text: of the first that is not. */
bool tensor_close(const struct tensor *got, const struct tensor *expected, double rtol, double atol, char *text,
                  size_t room);
double tensor_real(const struct tensor *t, uint64_t element);

#endif
