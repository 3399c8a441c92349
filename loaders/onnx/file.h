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
/* Types whose elements graphs hold in wider ones. */
enum {
	ONNX_E4M3FN = 17,
	ONNX_E4M3FNUZ,
	ONNX_E5M2,
	ONNX_E5M2FNUZ,
	ONNX_UINT4,
	ONNX_INT4,
	ONNX_E2M1,
	ONNX_E8M0,
	ONNX_UINT2,
	ONNX_INT2
};
/* The element type that ONNX's number stands for; -1: graphs do not have it. */
int onnx_type(int64_t number);
/* ---- op_narrow.c: the same, or the type that holds the elements of a narrow one */
int onnx_held_type(int64_t number);
/* Bits of an element of a narrow type; 0: it is none. */
unsigned onnx_narrow_bits(int64_t number);
/* What an element's bits mean, in the type that holds it. */
union number onnx_narrow_value(int64_t number, unsigned code);
/* Its name in messages. */
const char *onnx_type_name(int64_t number);
/* Makes *out of a tensor; what: whose it is, for messages. folder: where external data lies, or NULL. */
bool onnx_tensor_of(const struct onnx_tensor *t, const char *what, const char *folder, struct tensor *out,
                    struct error *err);

#endif
