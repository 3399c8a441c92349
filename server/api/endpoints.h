/* server/api/endpoints.h - the handlers of requests; routes.c has where each belongs. */
#ifndef SERVER_ENDPOINTS_H
#define SERVER_ENDPOINTS_H

#include "server/http/http.h"

/* page.c */
bool answer_page(struct exchange *x);
/* status.c */
bool answer_health(struct exchange *x);
bool answer_live(struct exchange *x);
bool answer_models(struct exchange *x);
bool answer_model(struct exchange *x);
/* router.c */
bool answer_models_load(struct exchange *x);
bool answer_models_unload(struct exchange *x);
bool answer_models_fetch(struct exchange *x);
bool answer_models_remove(struct exchange *x);
bool answer_models_events(struct exchange *x);
/* chat_completions.c, completions.c */
bool answer_chat(struct exchange *x);
bool answer_chat_tokens(struct exchange *x);
bool answer_completions(struct exchange *x);
/* anthropic.c */
bool answer_messages(struct exchange *x);
bool answer_count_tokens(struct exchange *x);
/* responses.c */
bool answer_responses(struct exchange *x);
bool answer_input_tokens(struct exchange *x);
bool answer_stored(struct exchange *x);
bool answer_drop_stored(struct exchange *x);
bool answer_cancel_stored(struct exchange *x);
/* embeddings.c */
bool answer_embeddings(struct exchange *x);
bool answer_embedding(struct exchange *x);
/* rerank.c */
bool answer_rerank(struct exchange *x);
bool answer_score(struct exchange *x);
/* slot_actions.c */
bool answer_slot_action(struct exchange *x);
/* native.c, as llama.cpp's server has it; texts.c, props.c, metrics.c */
bool answer_native(struct exchange *x);
bool answer_infill(struct exchange *x);
bool answer_tokenize(struct exchange *x);
bool answer_detokenize(struct exchange *x);
bool answer_apply_template(struct exchange *x);
bool answer_props(struct exchange *x);
bool answer_slots(struct exchange *x);
bool answer_metrics(struct exchange *x);
/* not_done.c */
bool answer_not_done(struct exchange *x);
/* adapters.c */
bool answer_adapters(struct exchange *x);
bool answer_set_adapters(struct exchange *x);
bool answer_load_adapter(struct exchange *x);
bool answer_unload_adapter(struct exchange *x);
/* ollama.c, ollama_embed.c, ollama_models.c, ollama_show.c */
bool answer_ollama_chat(struct exchange *x);
bool answer_ollama_generate(struct exchange *x);
bool answer_ollama_embed(struct exchange *x);
bool answer_ollama_embeddings(struct exchange *x);
bool answer_ollama_version(struct exchange *x);
bool answer_ollama_tags(struct exchange *x);
bool answer_ollama_show(struct exchange *x);
bool answer_ollama_ps(struct exchange *x);
bool answer_ollama_pull(struct exchange *x);
bool answer_ollama_push(struct exchange *x);
bool answer_ollama_create(struct exchange *x);
bool answer_ollama_copy(struct exchange *x);
bool answer_ollama_delete(struct exchange *x);
bool answer_ollama_blob(struct exchange *x);
bool answer_ollama_put_blob(struct exchange *x);

#endif
