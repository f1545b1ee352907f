/*
 * cors: which lists of origins are taken, and the lines that each origin's pages get.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoints/cors.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_lists(void **state)
{
    static const struct {
        const char *list;
        const char *says; /* NULL: taken */
    } rows[] = {
        {"*", NULL},
        {"null", NULL},
        {"https://app.example", NULL},
        {"http://localhost:3000,https://app.example, http://127.0.0.1:8080 ,null", NULL},
        {"http://[::1]:3000", NULL},
        {"chrome-extension://abcdef", NULL},
        {"", "is no origin"},
        {" ", "is no origin"},
        {"app.example", "is no origin"},
        {"https://", "is no origin"},
        {"://app.example", "is no origin"},
        {"https://a,,https://b", "is no origin"},
        {"https://a,", "is no origin"},
        {"https://app.example/", "not even a slash"},
        {"https://app.example/path", "not even a slash"},
        {"https://App.example", "lower case"},
        {"HTTPS://app.example", "lower case"},
        {"https://a b", "as browsers send it"},
        {"https://a\r\nX-Evil: 1", "as browsers send it"},
        {"https://*.example", "as browsers send it"},
        {"*,https://a", "alone"},
        {"https://a,*", "alone"},
    };
    char error[CORS_ERROR_MAX_BYTES];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        error[0] = '\0';
        struct cors *cors = cors_create(rows[row].list, error);
        if ((cors != NULL) != (rows[row].says == NULL))
            fail_msg("row %zu, %s: %s", row, rows[row].list, error);
        if (cors == NULL && (strstr(error, rows[row].says) == NULL ||
                             strncmp(error, "--cors-origin: ", 15) != 0))
            fail_msg("row %zu, %s: %s", row, rows[row].list, error);
        cors_free(cors);
    }
}

static void test_too_much(void **state)
{
    char list[64 * 32 + 600] = "";
    char error[CORS_ERROR_MAX_BYTES];

    (void)state;
    for (int i = 0; i < 64; i++)
        sprintf(list + strlen(list), "%shttps://a%d", i > 0 ? "," : "", i);
    struct cors *cors = cors_create(list, error);
    assert_non_null(cors);
    assert_non_null(cors_lines(cors, "https://a63"));
    cors_free(cors);
    strcat(list, ",https://one.more");
    assert_null(cors_create(list, error));
    assert_non_null(strstr(error, "at most 64"));
    strcpy(list, "https://");
    memset(list + 8, 'a', 248);
    list[256] = '\0';
    assert_null(cors_create(list, error));
}

static void test_lines(void **state)
{
    static const struct {
        const char *list, *origin;
        const char *allowed; /* NULL: it may not call */
    } rows[] = {
        {"*", "https://anything.example", "*"},
        {"*", "null", "*"},
        {"*", "", NULL},
        {"https://a,http://b:1", "https://a", "https://a"},
        {"https://a,http://b:1", "http://b:1", "http://b:1"},
        {"https://a,http://b:1", "http://b", NULL},
        {"https://a,http://b:1", "http://a", NULL},
        {"https://a,http://b:1", "https://a.evil", NULL},
        {"https://a,http://b:1", "https://A", NULL},
        {"https://a,http://b:1", "null", NULL},
        {"https://a,http://b:1", "*", NULL},
        {"https://a,http://b:1", "https://a,http://b:1", NULL},
        {"null", "null", "null"},
    };
    char error[CORS_ERROR_MAX_BYTES];
    char wanted[400];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct cors *cors = cors_create(rows[row].list, error);
        assert_non_null(cors);
        const char *lines = cors_lines(cors, rows[row].origin);
        if ((lines != NULL) != (rows[row].allowed != NULL))
            fail_msg("row %zu: %s", row, lines != NULL ? lines : "none");
        if (lines != NULL) {
            snprintf(wanted, sizeof(wanted),
                     "Access-Control-Allow-Origin: %s\r\n"
                     "Access-Control-Expose-Headers: X-Request-Id, Retry-After\r\n"
                     "Vary: Origin\r\n",
                     rows[row].allowed);
            assert_string_equal(lines, wanted);
        }
        cors_free(cors);
    }
    assert_string_equal(cors_vary, "Vary: Origin\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
