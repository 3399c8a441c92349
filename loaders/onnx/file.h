/* loaders/onnx/file.h - an open ONNX file, and tensors in it. */
#ifndef LOADERS_ONNX_FILE_H
#define LOADERS_ONNX_FILE_H

#include "loaders/onnx/onnx.h"
#include "loaders/onnx/proto.h"

struct onnx_file {
	char *name, *folder; /* folder: NULL: no external data */
	struct onnx_model *model;
	struct onnx_about about;
	struct onnx_slot *slot; /* inputs, then outputs */
};

enum { ONNX_STRING = 8, ONNX_LAST_TYPE = 26 };
/* The element type that ONNX's number stands for; -1: graphs do not have it. */
int onnx_type(int64_t number);
/* Its name in messages. */
const char *onnx_type_name(int64_t number);
/* Makes *out of a tensor; what: whose it is, for messages. folder: where external data lies, or NULL. */
bool onnx_tensor_of(const struct onnx_tensor *t, const char *what, const char *folder, struct tensor *out,
                    struct error *err);

#endif
