/* loaders/onnx/missing.c - in place of the importer, where configure found no libprotobuf-c. */
#include "loaders/onnx/onnx.h"

static bool refuse(const char *name, struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED, "%s: this build reads no ONNX files, as it has no libprotobuf-c",
	                 name);
}

struct onnx_file *onnx_open(const char *path, struct error *err)
{
	refuse(path, err);
	return NULL;
}

struct onnx_file *onnx_open_bytes(const char *name, const void *bytes, size_t n, const char *folder, struct error *err)
{
	(void)bytes;
	(void)n;
	(void)folder;
	refuse(name, err);
	return NULL;
}

void onnx_close(struct onnx_file *f) { (void)f; }

/* What follows is never called: no file is ever open. */

const struct onnx_about *onnx_about(const struct onnx_file *f)
{
	(void)f;
	return NULL;
}

void onnx_metadata(const struct onnx_file *f, uint32_t i, const char **key, const char **value)
{
	(void)f;
	(void)i;
	*key = *value = "";
}

bool onnx_import(struct onnx_file *f, const struct onnx_sizes *sizes, struct tensor_graph *g, struct onnx_refusal *why,
                 struct error *err)
{
	(void)f;
	(void)sizes;
	(void)g;
	(void)why;
	return refuse("a graph", err);
}

bool onnx_read_tensor(const char *name, const void *bytes, size_t n, struct tensor *out, struct error *err)
{
	(void)bytes;
	(void)n;
	(void)out;
	return refuse(name, err);
}
