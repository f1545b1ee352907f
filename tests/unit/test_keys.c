/*
 * keys: which files are taken, what each refusal says (never a key), who is let in, and that a
 * file that is read anew replaces all of the old one or nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "endpoints/keys.h"
#include "tests/unit/scratch.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_files(void **state)
{
    static const struct {
        const char *text;
        size_t count;     /* 0: refused */
        const char *says; /* of the refusal */
    } rows[] = {
        {"sk-one\n", 1, NULL},
        {"sk-one", 1, NULL}, /* without a newline */
        {"# secret ones\n\nsk-one\n  \t\n sk-two \t\r\n#sk-three\nsk#four\n", 3, NULL},
        {"a\na\n", 2, NULL},
        {"!\"$%&/()=?`~\n", 1, NULL},
        {"", 0, "holds no key"},
        {"\n# nothing\n", 0, "holds no key"},
        {"sk-one\nsk two\n", 0, "line 2 of"},
        {"sk-one\n\n# x\nsk-\x01-secret\n", 0, "line 4 of"},
        {"sk-\xc3\xa4-secret\n", 0, "printable ASCII"},
    };
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        scratch_write(path, rows[row].text, strlen(rows[row].text));
        error[0] = '\0';
        struct keys *keys = keys_open(path, error);
        if ((keys != NULL) != (rows[row].count > 0))
            fail_msg("row %zu: %s", row, error);
        if (keys != NULL) {
            assert_int_equal(keys_count(keys), rows[row].count);
            keys_close(keys);
            continue;
        }
        assert_memory_equal(error, "--api-key-file: ", 16);
        if (strstr(error, rows[row].says) == NULL || strstr(error, "secret") != NULL ||
            strstr(error, "two") != NULL)
            fail_msg("row %zu: %s", row, error);
    }
    scratch_close(&scratch);
}

static void append_keys(FILE *file, size_t count, size_t len)
{
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%0*zu\n", (int)len, i);
}

static void test_limits(void **state)
{
    static const struct {
        size_t count, len;
        const char *says; /* NULL: taken */
    } rows[] = {
        {1, KEY_MAX_BYTES, NULL},
        {1, KEY_MAX_BYTES + 1, "is too long"},
        {KEYS_MAX, 8, NULL},
        {KEYS_MAX + 1, 8, "one key too many"},
        {KEYS_MAX, KEY_MAX_BYTES, NULL},
        {KEYS_MAX * 2, KEY_MAX_BYTES, "larger than 256 KiB"},
    };
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        append_keys(file, rows[row].count, rows[row].len);
        fclose(file);
        struct keys *keys = keys_open(path, error);
        if ((keys != NULL) != (rows[row].says == NULL))
            fail_msg("row %zu: %s", row, error);
        if (keys != NULL)
            assert_int_equal(keys_count(keys), rows[row].count);
        else
            assert_non_null(strstr(error, rows[row].says));
        keys_close(keys);
    }
    scratch_close(&scratch);
}

/* What would block, or is no file, is refused and not waited for. */
static void test_no_files(void **state)
{
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];

    (void)state;
    scratch_open(&scratch);
    assert_null(keys_open(scratch_file(&scratch, "missing"), error));
    assert_non_null(strstr(error, "No such file"));
    assert_null(keys_open(scratch.folder, error));
    assert_non_null(strstr(error, "no regular file"));
    assert_int_equal(mkfifo(scratch_file(&scratch, "fifo"), 0600), 0);
    assert_null(keys_open(scratch_file(&scratch, "fifo"), error));
    assert_non_null(strstr(error, "no regular file"));
    assert_null(keys_open("/dev/zero", error));
    scratch_close(&scratch);
}

static void test_who_is_let_in(void **state)
{
    static const struct {
        const char *authorization;
        bool admitted;
    } rows[] = {
        {"Bearer sk-one", true},
        {"bearer sk-one", true}, /* RFC 9110, section 11.1: in any case */
        {"BEARER   sk-two", true},
        {"Bearer 12345678", true},
        {"Bearer 1234567890123456", true},
        {"", false},
        {"Bearer", false},
        {"Bearer ", false},
        {"Bearer sk-on", false},
        {"Bearer sk-onee", false},
        {"Bearer sk-one ", false},
        {"Bearer SK-ONE", false},
        {"Bearer sk-one,sk-two", false},
        {"Bearer sk-one\tsk-two", false},
        {"Bearer 1234567", false},
        {"Bearer 123456789", false},
        {"Bearer # secret", false},
        {"Basic sk-one", false},
        {"sk-one", false},
        {"Bearersk-one", false},
        {"Token Bearer sk-one", false},
    };
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];
    static const char text[] = "sk-one\nsk-two\n12345678\n1234567890123456\n# secret\n";

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    scratch_write(path, text, sizeof(text) - 1);
    struct keys *keys = keys_open(path, error);
    assert_non_null(keys);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        if (keys_admit(keys, rows[row].authorization) != rows[row].admitted)
            fail_msg("row %zu: %s", row, rows[row].authorization);
    }
    char longest[KEY_MAX_BYTES + 32] = "Bearer ";
    memset(longest + 7, 'x', KEY_MAX_BYTES + 20);
    assert_false(keys_admit(keys, longest));
    keys_close(keys);
    scratch_close(&scratch);
}

/* The first, the last and each byte of a long key count. */
static void test_each_byte_counts(void **state)
{
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];
    char given[7 + KEY_MAX_BYTES + 1] = "Bearer ";
    char *key = given + 7;

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    for (size_t i = 0; i < KEY_MAX_BYTES; i++)
        key[i] = (char)('a' + i % 26);
    scratch_write(path, key, KEY_MAX_BYTES);
    struct keys *keys = keys_open(path, error);
    assert_non_null(keys);
    assert_true(keys_admit(keys, given));
    for (size_t i = 0; i < KEY_MAX_BYTES; i++) {
        key[i] ^= 1;
        assert_false(keys_admit(keys, given));
        key[i] ^= 1;
        char saved = key[i];
        key[i] = '\0';
        assert_false(keys_admit(keys, given));
        key[i] = saved;
    }
    assert_true(keys_admit(keys, given));
    keys_close(keys);
    scratch_close(&scratch);
}

static void test_read_anew(void **state)
{
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    scratch_write(path, "old\n", 4);
    struct keys *keys = keys_open(path, error);
    assert_non_null(keys);
    scratch_write(path, "new\nnewer\n", 10);
    assert_true(keys_admit(keys, "Bearer old"));
    assert_int_equal(keys_reload(keys, error), 0);
    assert_false(keys_admit(keys, "Bearer old"));
    assert_true(keys_admit(keys, "Bearer new") && keys_admit(keys, "Bearer newer"));
    scratch_write(path, "newest\nnot a key\n", 17);
    assert_int_equal(keys_reload(keys, error), -1);
    assert_non_null(strstr(error, "line 2"));
    assert_true(keys_admit(keys, "Bearer new"));
    assert_false(keys_admit(keys, "Bearer newest"));
    unlink(path);
    assert_int_equal(keys_reload(keys, error), -1);
    assert_true(keys_admit(keys, "Bearer new"));
    keys_close(keys);
    keys_close(NULL); /* harmless */
    scratch_close(&scratch);
}

static void test_who_may_read_the_file(void **state)
{
    static const struct {
        mode_t mode;
        bool is_public;
    } rows[] = {{0600, false}, {0640, false}, {0644, true}, {0604, true}};
    struct scratch scratch;
    char error[KEYS_ERROR_MAX_BYTES];

    (void)state;
    scratch_open(&scratch);
    const char *path = scratch_file(&scratch, "keys");
    scratch_write(path, "key\n", 4);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        assert_int_equal(chmod(path, rows[row].mode), 0);
        struct keys *keys = keys_open(path, error);
        assert_non_null(keys);
        assert_int_equal(keys_are_public(keys), rows[row].is_public);
        keys_close(keys);
    }
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_who_is_let_in),
        cmocka_unit_test(test_each_byte_counts),
        cmocka_unit_test(test_read_anew),
        cmocka_unit_test(test_who_may_read_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
