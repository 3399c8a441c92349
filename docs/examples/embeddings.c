/* docs/examples/embeddings.c - how alike texts are.  ./a.out MODEL last|mean TEXT TEXT...
 *
 * Prints the cosine of the angle between the first text's embedding and each other's: 1 for texts that mean the same to
 * the model. Models that were trained for embeddings say which pooling they want, and what the text should begin and
 * end with. */
#include <jitrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With length 1, so that a scalar product of two is the cosine. */
static int embed(jit_model *m, jit_session *s, int pooling, const char *text, float *out, int width, jit_error *err)
{
	jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = 1);
	int32_t *ids = NULL;
	size_t n = 0;
	int status = jit_session_rewind(s, 0, err);

	if (status == JIT_OK)
		status = jit_model_tokenize(m, text, strlen(text), 1, 0, &ids, &n, err);
	if (status == JIT_OK)
		status = jit_session_embed(s, ids, n, &o, out, (size_t)width, err);
	free(ids);
	return status;
}

static double cosine(const float *a, const float *b, int width)
{
	double sum = 0;

	for (int i = 0; i < width; i++)
		sum += (double)a[i] * b[i];
	return sum;
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	const int mean = argc > 2 && strcmp(argv[2], "mean") == 0;

	if (argc < 5 || (!mean && strcmp(argv[2], "last") != 0))
		return fprintf(stderr, "usage: %s MODEL last|mean TEXT TEXT...\n", argv[0]), 2;
	jit_model *m = jit_model_open(argv[1], NULL, &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 512), &err) : NULL;
	int status = s ? jit_model_get_info(m, &info, &err) : err.code;
	float *first = status == JIT_OK ? malloc((size_t)info.embedding * sizeof *first) : NULL;
	float *other = status == JIT_OK ? malloc((size_t)info.embedding * sizeof *other) : NULL;
	for (int i = 3; i < argc && first && other && status == JIT_OK; i++) {
		status = embed(m, s, mean ? JIT_POOL_MEAN : JIT_POOL_LAST, argv[i], i == 3 ? first : other,
		               info.embedding, &err);
		if (status == JIT_OK && i > 3)
			printf("%.4f  %s\n", cosine(first, other, info.embedding), argv[i]);
	}
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	free(first);
	free(other);
	jit_session_close(s);
	jit_model_close(m);
	return err.code != JIT_OK;
}
