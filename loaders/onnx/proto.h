/* loaders/onnx/proto.h - ONNX's protobuf messages: the fields that are read, and how bytes become them.
 *
 * Owns: the numbers of fields (proto.def), and the decoding, which libprotobuf-c does by tables made of that file.
 * Before it, the nesting of messages is measured, as it decodes them by recursion; and while it runs, the memory that
 * it asks for is counted, as two bytes of a file can ask for hundreds. Fields that proto.def lacks are skipped.
 */
#ifndef LOADERS_ONNX_PROTO_H
#define LOADERS_ONNX_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

/* TYPE is one of protobuf's, MANY before it: repeated. */
#define PROTO_INT(name) \
	protobuf_c_boolean has_##name; \
	int64_t name;
#define PROTO_INT32(name) \
	protobuf_c_boolean has_##name; \
	int32_t name;
#define PROTO_FLOAT(name) \
	protobuf_c_boolean has_##name; \
	float name;
#define PROTO_TEXT(name) char *name;
#define PROTO_BYTES(name) \
	protobuf_c_boolean has_##name; \
	ProtobufCBinaryData name;
#define PROTO_INTS(name) \
	size_t n_##name; \
	int64_t *name;
#define PROTO_INT32S(name) \
	size_t n_##name; \
	int32_t *name;
#define PROTO_UINTS(name) \
	size_t n_##name; \
	uint64_t *name;
#define PROTO_FLOATS(name) \
	size_t n_##name; \
	float *name;
#define PROTO_DOUBLES(name) \
	size_t n_##name; \
	double *name;
#define PROTO_TEXTS(name) \
	size_t n_##name; \
	char **name;
#define PROTO_BLOBS(name) \
	size_t n_##name; \
	ProtobufCBinaryData *name;

#define MESSAGE(message) \
	struct onnx_##message { \
		ProtobufCMessage base;
#define FIELD(message, number, type, name) PROTO_##type(name)
#define ONE(message, number, of, name) struct onnx_##of *name;
#define MANY(message, number, of, name) \
	size_t n_##name; \
	struct onnx_##of **name;
#define END(message) \
	} \
	;
#include "loaders/onnx/proto.def"
#undef MESSAGE
#undef FIELD
#undef ONE
#undef MANY
#undef END

enum { PROTO_MAX_DEPTH = 48 }; /* messages in messages; a branch in a branch has four more */

/* NULL: err. what: the file, for messages. Freed by the functions below. */
struct onnx_model *proto_decode_model(const char *what, const void *bytes, size_t n, struct error *err);
struct onnx_tensor *proto_decode_tensor(const char *what, const void *bytes, size_t n, struct error *err);
void proto_free_model(struct onnx_model *m);
void proto_free_tensor(struct onnx_tensor *t);

#endif
