/* tests/eml/eml_tests.h - the tests of t_eml that have files of their own. */
#ifndef TESTS_EML_TESTS_H
#define TESTS_EML_TESTS_H

void test_formulas(void **state);
void test_tidy(void **state);
void test_constants(void **state);
void test_front(void **state);
void test_decimals(void **state);

#endif
