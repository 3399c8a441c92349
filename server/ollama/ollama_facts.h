/* server/ollama/ollama_facts.h - what the files of a model say, for ollama's clients.
 *
 * Owns: that a model need not be in memory for it: headers of its files are read.
 */
#ifndef SERVER_OLLAMA_FACTS_H
#define SERVER_OLLAMA_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loaders/model/model.h"
#include "server/engine/models.h"
#include "server/ollama/ollama_time.h"

/* As ollama shows the end of what stays for good. */
#define OLLAMA_FOR_GOOD INT64_C(11017000000)

struct ollama_facts {
	const struct model *file; /* of the model in memory, or own; NULL: it cannot be read */
	struct model own;
	struct error why; /* it cannot be read */
	char modified[OLLAMA_TIME], digest[65];
	uint64_t bytes;
	bool on_card;
};

/* loaded: the model, held, where it is in memory; NULL: the headers of its files are read. */
void ollama_facts_read(struct ollama_facts *f, const struct served *m, const jit_model *loaded);
void ollama_facts_free(struct ollama_facts *f);
/* format, family, parameter_size, quantization_level and so on. */
json_t *ollama_details(const struct ollama_facts *f);
/* Every key of the files, which can be read, arrays as null unless they are wanted, and those that clients look for. */
json_t *ollama_info(const struct ollama_facts *f, const struct served *m, bool verbose);
/* The template of its conversations; empty: it has none. */
const char *ollama_template(const struct ollama_facts *f, const struct served *m);
/* Whether they name the tokens with which a model is asked to fill a gap. */
bool ollama_has_gaps(const struct ollama_facts *f);
/* Whether conversations of this template know of reasoning. */
bool ollama_can_think(const char *template_text);
/* Of a template in Go's language: whether it writes reasoning between marks, whether it knows tools, and gaps. */
bool ollama_thinks_by_itself(const char *template_text);
bool ollama_knows_tools(const char *template_text);
bool ollama_knows_gaps(const char *template_text);

#endif
