/*
 * fault: each spelling means one thing, and a near miss means nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fault.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_spellings(void **state)
{
    static const struct {
        const char *text;
        struct fault fault;
    } rows[] = {
        {"error@0", {.kind = FAULT_ERROR, .token = 0}},
        {"reset@7", {.kind = FAULT_RESET, .token = 7}},
        {"eof@100000000", {.kind = FAULT_EOF, .token = 100000000}},
        {"stall@3:250", {.kind = FAULT_STALL, .token = 3, .stall_us = 250000}},
        {"stall@3:0.5", {.kind = FAULT_STALL, .token = 3, .stall_us = 500}},
        {"stall@0:0", {.kind = FAULT_STALL}},
        {"status:400", {.kind = FAULT_STATUS, .status = 400}},
        {"status:599", {.kind = FAULT_STATUS, .status = 599}},
        {"garble@1", {.kind = FAULT_GARBLE, .token = 1}},
        {"dup@2", {.kind = FAULT_DUP, .token = 2}},
        {"nodone", {.kind = FAULT_NODONE}},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct fault fault = {.kind = FAULT_NONE, .token = 99};

        assert_int_equal(fault_parse(rows[row].text, strlen(rows[row].text), &fault), 0);
        assert_int_equal(fault.kind, rows[row].fault.kind);
        assert_int_equal(fault.token, rows[row].fault.token);
        assert_int_equal(fault.stall_us, rows[row].fault.stall_us);
        assert_int_equal(fault.status, rows[row].fault.status);
    }
}

static void test_near_misses(void **state)
{
    static const char *const rows[] = {
        "",           "error",      "error@",
        "error@-1",   "error@+1",   "error@1 ",
        "error@1e3",  "error:1",    "errors@1",
        "Error@1",    "error@1:5",  "error@100000001",
        "reset@",     "eof@x",      "stall@3",
        "stall@3:",   "stall@:5",   "stall@3:5:6",
        "stall@3:-",  "stall@a:1",  "stall@3:0.1234",
        "status@500", "status:399", "status:600",
        "status:",    "status:5xx", "garble@",
        "dup",        "nodone@1",   "nodone ",
        "none",       "@1",         "error@99999999999999999999"};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct fault fault = {.kind = FAULT_DUP, .token = 99};

        assert_int_equal(fault_parse(rows[row], strlen(rows[row]), &fault), -1);
        assert_int_equal(fault.kind, FAULT_DUP); /* untouched */
        assert_int_equal(fault.token, 99);
    }
}

/* The text is of its length, whatever stands behind it. */
static void test_length(void **state)
{
    struct fault fault;

    (void)state;
    assert_int_equal(fault_parse("error@12345", 7, &fault), 0);
    assert_int_equal(fault.token, 1);
    assert_int_equal(fault_parse("nodonex", 6, &fault), 0);
    assert_int_equal(fault_parse("error@1", 6, &fault), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_near_misses),
        cmocka_unit_test(test_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
