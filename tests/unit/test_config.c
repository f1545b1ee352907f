/*
 * config: which of flag, environment and default wins, what each kind of setting takes, that an
 * error names its setting, and that what is printed can be read again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "config.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

extern char **environ;

/* Every test starts without a setting in its environment. */
static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; environ != NULL && environ[i] != NULL;) {
        char name[128];
        size_t len = strcspn(environ[i], "=");

        if (strncmp(environ[i], "RUNNEL_", 7) != 0 || len >= sizeof(name)) {
            i++;
            continue;
        }
        memcpy(name, environ[i], len);
        name[len] = '\0';
        unsetenv(name);
    }
    return 0;
}

enum { ARGS_MAX = 64 };

/* Load from a NULL-ended list of arguments. */
static enum config_action load(struct config *config, const char *const *args,
                               char error[CONFIG_ERROR_MAX_BYTES])
{
    static char name[] = "runnel";
    char *argv[ARGS_MAX + 2] = {name};
    int argc = 1;

    for (; args[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    error[0] = '\0';
    return config_load(config, argc, argv, error);
}

#define LOAD(config, error, ...) load(config, (const char *const[]){__VA_ARGS__ NULL}, error)

static void test_defaults(void **state)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    assert_int_equal(LOAD(&config, error, ), CONFIG_RUN);
    assert_string_equal(config.listen, "");
    assert_int_equal(config.socket_mode, 0660);
    assert_string_equal(config.state, "");
    assert_string_equal(config.log_file, "");
    assert_int_equal(config.log_level, LOG_INFO);
    assert_int_equal(config.max_tokens, 128);
    assert_int_equal(config.ttft_us, 200000);
    assert_int_equal(config.itl_us, 25000);
    assert_int_equal(config.max_tokens_limit, 100000);
    assert_int_equal(config.prompt_max_bytes, 65536);
    assert_int_equal(config.body_max_bytes, 1048576);
    assert_int_equal(config.slots, 256);
    assert_int_equal(config.queue, 1024);
    assert_int_equal(config.stall_timeout_us, 60000000);
    assert_int_equal(config.drain_us, 30000000);
    assert_false(config.ignore_cancel);
    assert_int_equal(config.read_timeout_us, 60000000);
    assert_int_equal(config.peer_timeout_us, 10000000);
}

static void test_a_flag_wins_over_the_environment(void **state)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    setenv("RUNNEL_SLOTS", "7", 1);
    setenv("RUNNEL_ITL_MS", "0.5", 1);
    setenv("RUNNEL_IGNORE_CANCEL", "1", 1);
    setenv("RUNNEL_LISTEN", "unix:/a", 1);
    setenv("RUNNEL_QUEUE", "3", 1);
    assert_int_equal(LOAD(&config, error, "--slots", "9", "--listen=unix:/b", "--itl-ms=2", ),
                     CONFIG_RUN);
    assert_int_equal(config.slots, 9);
    assert_string_equal(config.listen, "unix:/b");
    assert_int_equal(config.itl_us, 2000);
    assert_true(config.ignore_cancel);
    assert_int_equal(config.queue, 3);
    assert_int_equal(LOAD(&config, error, ), CONFIG_RUN);
    assert_int_equal(config.slots, 7);
    assert_string_equal(config.listen, "unix:/a");
    assert_int_equal(config.itl_us, 500);
}

static void test_the_last_flag_wins(void **state)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    assert_int_equal(LOAD(&config, error, "--slots", "1", "--slots=2", "--slots", "3", ),
                     CONFIG_RUN);
    assert_int_equal(config.slots, 3);
}

static void test_actions(void **state)
{
    static const struct {
        const char *args[4];
        enum config_action action;
    } rows[] = {
        {{"--help"}, CONFIG_HELP},
        {{"--version"}, CONFIG_VERSION},
        {{"--print-config"}, CONFIG_PRINT},
        {{"--slots", "5", "--print-config"}, CONFIG_PRINT},
        {{"--print-config", "--slots", "5"}, CONFIG_PRINT},
        {{"--print-config", "--slots=x"}, CONFIG_INVALID},
        {{"--nonsense", "--help"}, CONFIG_HELP}, /* whoever asks for help gets it */
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct config config;
        char error[CONFIG_ERROR_MAX_BYTES];

        if (load(&config, rows[row].args, error) != rows[row].action)
            fail_msg("row %zu: %s", row, error);
    }
}

/* Every kind of setting, by flag with `=`, by flag and value, and by environment. */
static void test_values_taken(void **state)
{
    static const struct {
        const char *flag;
        const char *environment;
        const char *value;
        size_t offset;
        int64_t number;
    } rows[] = {
#define AT(field) offsetof(struct config, field)
        {"--max-tokens", "RUNNEL_MAX_TOKENS", "1", AT(max_tokens), 1},
        {"--max-tokens-limit", "RUNNEL_MAX_TOKENS_LIMIT", "100000000", AT(max_tokens_limit),
         100000000},
        {"--slots", "RUNNEL_SLOTS", "1000000", AT(slots), 1000000},
        {"--slots", "RUNNEL_SLOTS", "1", AT(slots), 1},
        {"--queue", "RUNNEL_QUEUE", "0", AT(queue), 0},
        {"--prompt-max-bytes", "RUNNEL_PROMPT_MAX_BYTES", "16777216", AT(prompt_max_bytes),
         16777216},
        {"--body-max-bytes", "RUNNEL_BODY_MAX_BYTES", "1", AT(body_max_bytes), 1},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "0", AT(socket_mode), 0},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "777", AT(socket_mode), 0777},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "0600", AT(socket_mode), 0600},
        {"--ttft-ms", "RUNNEL_TTFT_MS", "0", AT(ttft_us), 0},
        {"--ttft-ms", "RUNNEL_TTFT_MS", "1.5", AT(ttft_us), 1500},
        {"--itl-ms", "RUNNEL_ITL_MS", "0.001", AT(itl_us), 1},
        {"--ttft-limit-ms", "RUNNEL_TTFT_LIMIT_MS", "86400000", AT(ttft_limit_us),
         INT64_C(86400000000)},
        {"--itl-limit-ms", "RUNNEL_ITL_LIMIT_MS", "25", AT(itl_limit_us), 25000},
        {"--stall-timeout", "RUNNEL_STALL_TIMEOUT", "0.25", AT(stall_timeout_us), 250000},
        {"--drain-s", "RUNNEL_DRAIN_S", "86400", AT(drain_us), INT64_C(86400000000)},
        {"--read-timeout-s", "RUNNEL_READ_TIMEOUT_S", "1.001", AT(read_timeout_us), 1001000},
        {"--peer-timeout-s", "RUNNEL_PEER_TIMEOUT_S", "0", AT(peer_timeout_us), 0},
        {"--peer-timeout-s", "RUNNEL_PEER_TIMEOUT_S", "3600", AT(peer_timeout_us),
         INT64_C(3600000000)},
        {"--log-level", "RUNNEL_LOG_LEVEL", "debug", AT(log_level), LOG_DEBUG},
        {"--log-level", "RUNNEL_LOG_LEVEL", "error", AT(log_level), LOG_ERROR},
#undef AT
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct config config;
        char joined[100];
        char error[CONFIG_ERROR_MAX_BYTES];
        int64_t number;

        for (int way = 0; way < 3; way++) {
            enum config_action action;
            snprintf(joined, sizeof(joined), "%s=%s", rows[row].flag, rows[row].value);
            if (way == 2)
                setenv(rows[row].environment, rows[row].value, 1);
            if (way == 0)
                action = LOAD(&config, error, joined, );
            else if (way == 1)
                action = LOAD(&config, error, rows[row].flag, rows[row].value, );
            else
                action = LOAD(&config, error, );
            memcpy(&number, (const char *)&config + rows[row].offset, sizeof(number));
            if (action != CONFIG_RUN || number != rows[row].number)
                fail_msg("row %zu, %s, way %d: %lld %s", row, joined, way, (long long)number,
                         error);
        }
        unsetenv(rows[row].environment);
    }
}

static void test_values_refused(void **state)
{
    static const struct {
        const char *flag;
        const char *environment;
        const char *value;
        const char *says;
    } rows[] = {
        {"--slots", "RUNNEL_SLOTS", "0", "a whole number, 1 to 1000000"},
        {"--slots", "RUNNEL_SLOTS", "1000001", "1 to 1000000"},
        {"--slots", "RUNNEL_SLOTS", "", "``"},
        {"--slots", "RUNNEL_SLOTS", "+1", "`+1`"},
        {"--slots", "RUNNEL_SLOTS", "-1", "`-1`"},
        {"--slots", "RUNNEL_SLOTS", "1e3", "`1e3`"},
        {"--slots", "RUNNEL_SLOTS", "10 ", "`10 `"},
        {"--slots", "RUNNEL_SLOTS", "99999999999999999999", "1 to 1000000"},
        {"--body-max-bytes", "RUNNEL_BODY_MAX_BYTES", "1M", "1 to 67108864"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "1000", "octal permission bits, 0 to 777"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "888", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "668", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "-1", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", " 660", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "660 ", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "rw", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "", "octal"},
        {"--socket-mode", "RUNNEL_SOCKET_MODE", "2000000000000000000000660", "octal"},
        {"--itl-ms", "RUNNEL_ITL_MS", "0.0001", "0 to 86400000 milliseconds"},
        {"--itl-ms", "RUNNEL_ITL_MS", "86400000.001", "milliseconds"},
        {"--itl-ms", "RUNNEL_ITL_MS", "25ms", "up to three decimals"},
        {"--drain-s", "RUNNEL_DRAIN_S", "86400.001", "0 to 86400 seconds"},
        {"--drain-s", "RUNNEL_DRAIN_S", "-1", "seconds"},
        {"--stall-timeout", "RUNNEL_STALL_TIMEOUT", "60s", "`60s`"},
        {"--log-level", "RUNNEL_LOG_LEVEL", "Info", "debug, info, warn or error"},
        {"--log-level", "RUNNEL_LOG_LEVEL", "", "debug, info, warn or error"},
        {"--log-level", "RUNNEL_LOG_LEVEL", "1", "debug, info, warn or error"},
        {"--ignore-cancel", "RUNNEL_IGNORE_CANCEL", "2", "0 or 1"},
        {"--ignore-cancel", "RUNNEL_IGNORE_CANCEL", "yes", "0 or 1"},
        {"--ignore-cancel", "RUNNEL_IGNORE_CANCEL", "", "0 or 1"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct config config;
        char joined[100];
        char error[CONFIG_ERROR_MAX_BYTES];

        snprintf(joined, sizeof(joined), "%s=%s", rows[row].flag, rows[row].value);
        assert_int_equal(LOAD(&config, error, joined, ), CONFIG_INVALID);
        if (strncmp(error, rows[row].flag, strlen(rows[row].flag)) != 0 ||
            strstr(error, rows[row].says) == NULL || strchr(error, '\n') != NULL)
            fail_msg("row %zu, %s: %s", row, joined, error);

        setenv(rows[row].environment, rows[row].value, 1);
        assert_int_equal(LOAD(&config, error, ), CONFIG_INVALID);
        if (strncmp(error, rows[row].environment, strlen(rows[row].environment)) != 0 ||
            strstr(error, rows[row].says) == NULL)
            fail_msg("row %zu, environment: %s", row, error);
        unsetenv(rows[row].environment);
    }
}

static void test_the_switch(void **state)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    assert_int_equal(LOAD(&config, error, "--ignore-cancel", ), CONFIG_RUN);
    assert_true(config.ignore_cancel);
    /* It takes no value from the next argument. */
    assert_int_equal(LOAD(&config, error, "--ignore-cancel", "--slots", "2", ), CONFIG_RUN);
    assert_true(config.ignore_cancel);
    assert_int_equal(config.slots, 2);
    assert_int_equal(LOAD(&config, error, "--ignore-cancel", "0", ), CONFIG_INVALID);
    setenv("RUNNEL_IGNORE_CANCEL", "1", 1);
    assert_int_equal(LOAD(&config, error, "--ignore-cancel=0", ), CONFIG_RUN);
    assert_false(config.ignore_cancel);
}

static void test_not_an_option(void **state)
{
    static const struct {
        const char *args[4];
        const char *says;
    } rows[] = {
        {{"--slot", "5"}, "`--slot`"},
        {{"--slotss=5"}, "`--slotss=5`"},
        {{"slots=5"}, "`slots=5`"},
        {{"-s"}, "`-s`"},
        {{"--"}, "`--`"},
        {{"--=5"}, "`--=5`"},
        {{""}, "``"},
        {{"--slots"}, "--slots needs a value"},
        {{"--listen"}, "--listen needs a value"},
        {{"--slots", "5", "6"}, "`6`"},
        {{"--Slots", "5"}, "`--Slots`"},
        {{"--ignore_cancel"}, "`--ignore_cancel`"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct config config;
        char error[CONFIG_ERROR_MAX_BYTES];

        assert_int_equal(load(&config, rows[row].args, error), CONFIG_INVALID);
        if (strstr(error, rows[row].says) == NULL)
            fail_msg("row %zu: %s", row, error);
    }
}

static void test_settings_that_contradict(void **state)
{
    static const struct {
        const char *args[5];
        const char *says[2];
    } rows[] = {
        {{"--max-tokens=6", "--max-tokens-limit=5"}, {"--max-tokens", "--max-tokens-limit"}},
        {{"--ttft-ms=5.001", "--ttft-limit-ms=5"}, {"--ttft-ms", "--ttft-limit-ms"}},
        {{"--itl-ms=6", "--itl-limit-ms=5"}, {"--itl-ms", "--itl-limit-ms"}},
        {{"--max-tokens-limit=5"}, {"--max-tokens", "--max-tokens-limit"}}, /* the default */
    };
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        assert_int_equal(load(&config, rows[row].args, error), CONFIG_INVALID);
        if (strstr(error, rows[row].says[0]) == NULL ||
            strstr(error, rows[row].says[1]) == NULL)
            fail_msg("row %zu: %s", row, error);
    }
    assert_int_equal(LOAD(&config, error, "--max-tokens=5", "--max-tokens-limit=5",
                          "--itl-ms=5", "--itl-limit-ms=5", ),
                     CONFIG_RUN);
}

static void test_an_endless_value_is_cut(void **state)
{
    static char arg[5000] = "--slots=";
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    (void)state;
    memset(arg + 8, '9', sizeof(arg) - 9);
    assert_int_equal(LOAD(&config, error, arg, ), CONFIG_INVALID);
    assert_true(strlen(error) < CONFIG_ERROR_MAX_BYTES);
    assert_non_null(strstr(error, "--slots"));
    memset(arg, 'x', 8);
    assert_int_equal(LOAD(&config, error, arg, ), CONFIG_INVALID);
    assert_true(strlen(error) < CONFIG_ERROR_MAX_BYTES);
}

static bool are_equal(const struct config *a, const struct config *b)
{
    struct config copy = *b;

    if (strcmp(a->listen, b->listen) != 0 || strcmp(a->state, b->state) != 0 ||
        strcmp(a->log_file, b->log_file) != 0 ||
        strcmp(a->timing_trace, b->timing_trace) != 0 ||
        strcmp(a->api_key_file, b->api_key_file) != 0 ||
        strcmp(a->cors_origin, b->cors_origin) != 0)
        return false;
    copy.listen = a->listen;
    copy.state = a->state;
    copy.log_file = a->log_file;
    copy.timing_trace = a->timing_trace;
    copy.api_key_file = a->api_key_file;
    copy.cors_origin = a->cors_origin;
    return memcmp(a, &copy, sizeof(copy)) == 0;
}

/* Each printed line is a flag again: the settings that come out are those that went in. */
static void check_print(const char *const *args, const char *line)
{
    struct config config;
    struct config again;
    char error[CONFIG_ERROR_MAX_BYTES];
    char *text = NULL;
    size_t len = 0;
    static char flags[ARGS_MAX][200];
    const char *list[ARGS_MAX + 1] = {NULL};
    size_t count = 0;

    assert_int_equal(load(&config, args, error), CONFIG_RUN);
    FILE *out = open_memstream(&text, &len);
    config_print(&config, out);
    fclose(out);
    if (strstr(text, line) == NULL)
        fail_msg("no `%s` in:\n%s", line, text);
    for (char *at = strtok(text, "\n"); at != NULL; at = strtok(NULL, "\n")) {
        char name[64];
        const char *equals = strstr(at, " = ");
        const char *comment = strstr(at, "  # ");
        assert_non_null(equals);
        assert_non_null(comment);
        snprintf(name, sizeof(name), "%.*s", (int)(equals - at), at);
        snprintf(flags[count], sizeof(flags[count]), "--%s=%.*s", name,
                 (int)(comment - equals - 3), equals + 3);
        list[count] = flags[count];
        count++;
    }
    clear_environment(NULL);
    if (load(&again, list, error) != CONFIG_RUN)
        fail_msg("what was printed is refused: %s", error);
    assert_true(are_equal(&config, &again));
    free(text);
}

static void test_what_is_printed_can_be_read(void **state)
{
    static const struct {
        const char *args[8];
        const char *line;
    } rows[] = {
        {{NULL}, "slots = 256  # default\n"},
        {{NULL}, "socket-mode = 660  # default\n"},
        {{NULL}, "listen =   # default\n"},
        {{NULL}, "stall-timeout = 60  # default\n"},
        {{NULL}, "ignore-cancel = 0  # default\n"},
        {{NULL}, "log-level = info  # default\n"},
        {{"--slots=7", "--queue=0"}, "slots = 7  # flag\n"},
        {{"--listen", "unix:/run/a b.sock", "--state=/s"},
         "listen = unix:/run/a b.sock  # flag\n"},
        {{"--itl-ms=0.5", "--ttft-ms=0.001"}, "itl-ms = 0.500  # flag\n"},
        {{"--itl-ms=0.5", "--ttft-ms=0.001"}, "ttft-ms = 0.001  # flag\n"},
        {{"--stall-timeout=0.25", "--drain-s=1.001"}, "stall-timeout = 0.250  # flag\n"},
        {{"--stall-timeout=0.25", "--drain-s=1.001"}, "drain-s = 1.001  # flag\n"},
        {{"--socket-mode=0", "--ignore-cancel"}, "socket-mode = 000  # flag\n"},
        {{"--socket-mode=7", "--ignore-cancel"}, "socket-mode = 007  # flag\n"},
        {{"--ignore-cancel", "--log-level=debug"}, "ignore-cancel = 1  # flag\n"},
        {{"--log-level=debug"}, "log-level = debug  # flag\n"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++)
        check_print(rows[row].args, rows[row].line);
    setenv("RUNNEL_SLOTS", "9", 1);
    check_print((const char *const[]){NULL}, "slots = 9  # environment\n");
    setenv("RUNNEL_SLOTS", "9", 1);
    check_print((const char *const[]){"--slots=8", NULL}, "slots = 8  # flag\n");
}

/* The help knows every setting that is printed, and its environment name. */
static void test_help_is_complete(void **state)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];
    char *help = NULL;
    char *printed = NULL;
    size_t len;

    (void)state;
    FILE *out = open_memstream(&help, &len);
    config_help(out);
    fclose(out);
    assert_int_equal(LOAD(&config, error, ), CONFIG_RUN);
    out = open_memstream(&printed, &len);
    config_print(&config, out);
    fclose(out);
    size_t count = 0;
    for (char *at = strtok(printed, "\n"); at != NULL; at = strtok(NULL, "\n"), count++) {
        char flag[80];
        char name[80] = "environment RUNNEL_";
        size_t end = strlen(name);
        snprintf(flag, sizeof(flag), "  --%.*s", (int)(strstr(at, " = ") - at), at);
        for (const char *c = flag + 4; *c != '\0'; c++)
            name[end++] = *c == '-' ? '_' : (char)(*c - 'a' + 'A');
        strcpy(name + end, "\n");
        if (strstr(help, flag) == NULL || strstr(help, name) == NULL)
            fail_msg("%s or %s is not in the help", flag, name);
    }
    assert_true(count >= 18);
    free(help);
    free(printed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear_environment, clear_environment)
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_a_flag_wins_over_the_environment),
        TEST(test_the_last_flag_wins),
        TEST(test_actions),
        TEST(test_values_taken),
        TEST(test_values_refused),
        TEST(test_the_switch),
        TEST(test_not_an_option),
        TEST(test_settings_that_contradict),
        TEST(test_an_endless_value_is_cut),
        TEST(test_what_is_printed_can_be_read),
        TEST(test_help_is_complete),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
