/* tests/runtime/adapter_refused_tests.h - tests of t_adapter_files. */
#ifndef TESTS_RUNTIME_ADAPTER_REFUSED_TESTS_H
#define TESTS_RUNTIME_ADAPTER_REFUSED_TESTS_H

void test_refused_gguf(void **unused);
void test_refused_folders(void **unused);
/* Every field of an adapter_config.json. */
void test_fields(void **unused);

#endif
