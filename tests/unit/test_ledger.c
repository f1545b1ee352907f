/*
 * ledger: every transition counts once, for every reader, over processes that end, crash and
 * start again; and a file that is not a ledger is left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/ledger_file.h"
#include "tests/unit/fake_engine.h"
#include "tests/unit/scratch.h"

#ifdef __SANITIZE_THREAD__ /* every access is checked, slowly: fewer of them show the same */
#define FEWER 10
#else
#define FEWER 1
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct scratch scratch;
static char path[128]; /* of the ledger's file */

static int open_scratch(void **state)
{
    (void)state;
    scratch_open(&scratch);
    snprintf(path, sizeof(path), "%s", scratch_file(&scratch, "state"));
    return 0;
}

static int close_scratch(void **state)
{
    (void)state;
    scratch_close(&scratch);
    return 0;
}

static struct ledger *must_open(const char *file)
{
    char error[LEDGER_ERROR_MAX_BYTES] = "";
    struct ledger *ledger = ledger_open(file, error);

    if (ledger == NULL)
        fail_msg("%s", error);
    return ledger;
}

static struct ledger_request request_of(const char *id, enum ledger_route route)
{
    struct ledger_request request = {.route = route, .requested = 100, .accepted_wall_us = 7};

    snprintf(request.id, sizeof(request.id), "%s", id);
    return request;
}

static void tokens(struct ledger *ledger, struct ledger_request *request, int count,
                   enum ledger_fate fate)
{
    const struct ledger_tokens one = {.count = 1, .fate = fate};

    for (int i = 0; i < count; i++)
        ledger_tokens(ledger, request, &one);
}

/* A request from its acceptance to its end. */
static void run_request(struct ledger *ledger, const char *id, enum ledger_route route,
                        int count)
{
    struct ledger_request request = request_of(id, route);

    ledger_accept(ledger, &request);
    ledger_start(ledger, &request, 0);
    tokens(ledger, &request, count, LEDGER_TOKENS_DELIVERED);
    ledger_end(ledger, &request, LEDGER_DONE, LEDGER_NOT_DETECTED);
}

/* --- one process --- */

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(ledger_route_name(LEDGER_STREAM), "stream");
    assert_string_equal(ledger_route_name(LEDGER_CHAT), "chat");
    assert_string_equal(ledger_outcome_name(LEDGER_LIVE), "live");
    assert_string_equal(ledger_outcome_name(LEDGER_DRAINED), "drained");
    assert_string_equal(ledger_phase_name(LEDGER_DECODE), "decode");
    assert_string_equal(ledger_detector_name(LEDGER_NOT_DETECTED), "");
    assert_string_equal(ledger_detector_name(LEDGER_BY_ABORT), "abort");
    /* What a file of another hand may hold. */
    assert_string_equal(ledger_route_name((enum ledger_route)LEDGER_ROUTES), "unknown");
    assert_string_equal(ledger_outcome_name((enum ledger_outcome)99), "unknown");
    assert_string_equal(ledger_phase_name((enum ledger_phase) - 1), "unknown");
    assert_string_equal(ledger_detector_name((enum ledger_detector)4), "unknown");
}

static void assert_gauges(struct ledger *ledger, uint64_t queued, uint64_t running,
                          uint64_t held)
{
    struct ledger_totals totals = check_books(ledger);

    assert_int_equal(totals.queued, queued);
    assert_int_equal(totals.running, running);
    assert_int_equal(totals.held, held);
}

static void assert_same_request(const struct ledger_request *a, const struct ledger_request *b)
{
    assert_int_equal(a->sequence, b->sequence);
    assert_string_equal(a->id, b->id);
    assert_int_equal(a->route, b->route);
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->detected_by, b->detected_by);
    assert_int_equal(a->requested, b->requested);
    assert_int_equal(a->generated, b->generated);
    assert_int_equal(a->delivered, b->delivered);
    assert_int_equal(a->discarded, b->discarded);
    assert_int_equal(a->accepted_wall_us, b->accepted_wall_us);
    assert_int_equal(a->ttft_us, b->ttft_us);
    assert_int_equal(a->duration_us, b->duration_us);
    assert_int_equal(a->pid, b->pid);
}

static void test_every_transition_counts_once(void **state)
{
    struct ledger *ledger = must_open(NULL);
    struct ledger_request one = request_of("one", LEDGER_GENERATE);
    struct ledger_request found;

    (void)state;
    assert_gauges(ledger, 0, 0, 0);
    ledger_accept(ledger, &one);
    assert_gauges(ledger, 1, 0, 0);
    assert_int_equal(one.sequence, 1);
    assert_int_equal(one.pid, getpid());
    assert_int_equal(one.ttft_us, -1);
    ledger_start(ledger, &one, 0);
    assert_gauges(ledger, 0, 1, 0);
    assert_int_equal(one.phase, LEDGER_PREFILL);
    tokens(ledger, &one, 1, LEDGER_TOKENS_HELD);
    assert_int_equal(one.phase, LEDGER_DECODE);
    tokens(ledger, &one, 2, LEDGER_TOKENS_HELD);
    tokens(ledger, &one, 4, LEDGER_TOKENS_DELIVERED);
    tokens(ledger, &one, 8, LEDGER_TOKENS_DISCARDED);
    assert_gauges(ledger, 0, 1, 3);
    ledger_settle_held(ledger, &one, 3, true); /* all of them are kept back */
    assert_gauges(ledger, 0, 1, 3);
    ledger_settle_held(ledger, &one, 1, true);
    assert_gauges(ledger, 0, 1, 1);
    ledger_settle_held(ledger, &one, 0, true);
    ledger_settle_held(ledger, &one, 0, true); /* nothing is held: nothing happens */
    ledger_settle_held(ledger, &one, 0, false);
    assert_gauges(ledger, 0, 1, 0);
    assert_true(ledger_find(ledger, "one", &found));
    assert_int_equal(found.outcome, LEDGER_LIVE);
    assert_int_equal(found.generated, 15);
    assert_int_equal(found.delivered, 7);
    assert_int_equal(found.discarded, 8);
    assert_int_equal(found.duration_us, -1);
    tokens(ledger, &one, 5, LEDGER_TOKENS_HELD);
    one.duration_us = 123;
    one.ttft_us = 45;
    ledger_end(ledger, &one, LEDGER_CANCELLED, LEDGER_BY_ABORT);
    assert_gauges(ledger, 0, 0, 0);
    assert_int_equal(one.discarded, 13);

    struct ledger_totals totals = check_books(ledger);
    assert_int_equal(totals.accepted, 1);
    assert_int_equal(totals.ended[LEDGER_GENERATE][LEDGER_CANCELLED], 1);
    assert_int_equal(totals.generated, 20);
    assert_int_equal(totals.delivered, 7);
    assert_int_equal(totals.discarded, 13);
    assert_true(ledger_find(ledger, "one", &found));
    assert_same_request(&found, &one);
    ledger_close(ledger);
}

/* From any phase to any outcome: the right gauge goes down, the right sum goes up. */
static void test_every_end(void **state)
{
    struct ledger *ledger = must_open(NULL);
    uint64_t count = 0;

    (void)state;
    for (unsigned route = 0; route < LEDGER_ROUTES; route++) {
        for (unsigned outcome = LEDGER_DONE; outcome < LEDGER_OUTCOMES; outcome++) {
            for (unsigned phase = 0; phase < LEDGER_PHASES; phase++) {
                struct ledger_request one = request_of("x", (enum ledger_route)route);
                ledger_accept(ledger, &one);
                if (phase > LEDGER_QUEUED)
                    ledger_start(ledger, &one, 0);
                if (phase > LEDGER_PREFILL)
                    tokens(ledger, &one, 1, LEDGER_TOKENS_HELD);
                ledger_end(ledger, &one, (enum ledger_outcome)outcome, LEDGER_NOT_DETECTED);
                struct ledger_totals totals = check_books(ledger);
                assert_int_equal(totals.accepted, ++count);
                assert_int_equal(totals.ended[route][outcome], phase + 1);
                assert_int_equal(totals.queued + totals.running + totals.held, 0);
                assert_int_equal(one.phase, phase);
            }
        }
    }
    ledger_close(ledger);
}

static void test_find_and_last(void **state)
{
    struct ledger *ledger = must_open(NULL);
    struct ledger_request found;
    char longest[LEDGER_ID_MAX_BYTES + 2];

    (void)state;
    assert_false(ledger_find(ledger, "a", &found));
    assert_false(ledger_find(ledger, "", &found));
    assert_false(ledger_last(ledger, LEDGER_STREAM, &found));
    run_request(ledger, "a", LEDGER_STREAM, 1);
    run_request(ledger, "b", LEDGER_GENERATE, 2);
    run_request(ledger, "a", LEDGER_STREAM, 3);
    run_request(ledger, "c", LEDGER_GENERATE, 4);
    assert_true(ledger_find(ledger, "a", &found)); /* the later of the two */
    assert_int_equal(found.generated, 3);
    assert_int_equal(found.sequence, 3);
    assert_true(ledger_last(ledger, LEDGER_STREAM, &found));
    assert_int_equal(found.sequence, 3);
    assert_true(ledger_last(ledger, LEDGER_GENERATE, &found));
    assert_string_equal(found.id, "c");
    assert_false(ledger_last(ledger, LEDGER_CHAT, &found));
    assert_false(ledger_find(ledger, "A", &found));
    assert_false(ledger_find(ledger, "ab", &found));
    assert_false(ledger_find(ledger, "", &found));

    memset(longest, 'z', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_false(ledger_find(ledger, longest, &found)); /* 65 bytes */
    longest[LEDGER_ID_MAX_BYTES] = '\0';
    run_request(ledger, longest, LEDGER_STREAM, 1);
    assert_true(ledger_find(ledger, longest, &found));
    assert_string_equal(found.id, longest);
    ledger_close(ledger);
}

/* A live request whose place in the ring was taken still counts, and disturbs nobody. */
static void test_the_ring_goes_round(void **state)
{
    enum { REQUESTS = 5000 };
    struct ledger *ledger = must_open(NULL);
    struct ledger_request old = request_of("old", LEDGER_STREAM);
    struct ledger_request found;
    char id[16];

    (void)state;
    ledger_accept(ledger, &old);
    ledger_start(ledger, &old, 0);
    tokens(ledger, &old, 1, LEDGER_TOKENS_DELIVERED);
    for (int i = 1; i < REQUESTS; i++) {
        snprintf(id, sizeof(id), "r%d", i);
        run_request(ledger, id, LEDGER_STREAM, 1);
        if (i == LEDGER_RING - 1)
            assert_true(ledger_find(ledger, "old", &found)); /* the last one back */
        if (i == LEDGER_RING)
            assert_false(ledger_find(ledger, "old", &found));
    }
    for (int i = 0; i < REQUESTS; i += FEWER) {
        snprintf(id, sizeof(id), "r%d", i);
        bool kept = ledger_find(ledger, id, &found);
        assert_int_equal(kept, i >= REQUESTS - LEDGER_RING);
        if (kept)
            assert_int_equal(found.sequence, i + 1);
    }
    /* `old` (1) shares its place with the request 4096 later. */
    tokens(ledger, &old, 3, LEDGER_TOKENS_HELD);
    ledger_settle_held(ledger, &old, 0, true);
    ledger_end(ledger, &old, LEDGER_DRAINED, LEDGER_NOT_DETECTED);
    assert_true(ledger_find(ledger, "r4096", &found));
    assert_int_equal(found.sequence, 4097);
    assert_int_equal(found.generated, 1);
    assert_int_equal(found.outcome, LEDGER_DONE);
    assert_false(ledger_find(ledger, "old", &found));
    struct ledger_totals totals = check_books(ledger);
    assert_int_equal(totals.accepted, REQUESTS);
    assert_int_equal(totals.generated, REQUESTS - 1 + 4);
    assert_int_equal(totals.ended[LEDGER_STREAM][LEDGER_DRAINED], 1);
    assert_int_equal(totals.queued + totals.running, 0);
    ledger_close(ledger);
}

static void test_memory_is_of_one_process_alone(void **state)
{
    struct ledger *one = must_open(NULL);
    struct ledger *other = must_open("");

    (void)state;
    run_request(one, "a", LEDGER_STREAM, 1);
    assert_int_equal(check_books(other).accepted, 0);
    ledger_close(one);
    ledger_close(other);
    ledger_close(NULL);
}

/* --- restarts --- */

static void test_totals_go_on_after_a_restart(void **state)
{
    struct ledger_request found;

    (void)state;
    for (uint64_t round = 1; round <= 5; round++) {
        struct ledger *ledger = must_open(path);
        char id[16];
        assert_int_equal(check_books(ledger).accepted, round - 1);
        snprintf(id, sizeof(id), "r%llu", (unsigned long long)round);
        run_request(ledger, id, LEDGER_CHAT, 3);
        struct ledger_totals totals = check_books(ledger);
        assert_int_equal(totals.accepted, round);
        assert_int_equal(totals.delivered, 3 * round);
        assert_int_equal(totals.ended[LEDGER_CHAT][LEDGER_DONE], round);
        assert_true(ledger_find(ledger, "r1", &found));
        assert_int_equal(found.sequence, 1);
        assert_true(ledger_last(ledger, LEDGER_CHAT, &found));
        assert_int_equal(found.sequence, round);
        ledger_close(ledger);
    }
}

static void test_the_file_is_private_to_user_and_group(void **state)
{
    struct stat status;
    mode_t before = umask(0);

    (void)state;
    ledger_close(must_open(path));
    umask(before);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0660);
    assert_int_equal(status.st_size, sizeof(struct file));
}

/* --- several processes --- */

/* A child that works on the ledger, says so with one byte, and lives until it is told to end.
 */
struct child {
    pid_t pid;
    int says, hears;
};

static struct child start_child(void (*work)(struct ledger *))
{
    int up[2];
    int down[2];
    char byte;

    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    struct child child = {.pid = fork(), .says = up[0], .hears = down[1]};
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        char error[LEDGER_ERROR_MAX_BYTES];
        struct ledger *ledger = ledger_open(path, error);
        if (ledger == NULL)
            _exit(1);
        work(ledger);
        close(down[1]);
        if (write(up[1], "k", 1) != 1 || read(down[0], &byte, 1) < 0)
            _exit(1);
        ledger_close(ledger);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    return child;
}

static void forget_child(struct child *child)
{
    close(child->says);
    close(child->hears);
}

static void end_child(struct child *child)
{
    int status;

    forget_child(child); /* its read ends */
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void kill_child(struct child *child)
{
    assert_int_equal(kill(child->pid, SIGKILL), 0);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
    forget_child(child);
}

static void work_done(struct ledger *ledger)
{
    run_request(ledger, "child-done", LEDGER_STREAM, 10);
}

/* One queued, one in prefill, one that streams, one that holds; and one that is done. */
static void work_live(struct ledger *ledger)
{
    static struct ledger_request requests[4];

    run_request(ledger, "child-done", LEDGER_STREAM, 10);
    requests[0] = request_of("queued", LEDGER_CHAT);
    requests[1] = request_of("prefill", LEDGER_STREAM);
    requests[2] = request_of("decode", LEDGER_COMPLETIONS);
    requests[3] = request_of("held", LEDGER_GENERATE);
    for (int i = 0; i < 4; i++)
        ledger_accept(ledger, &requests[i]);
    for (int i = 1; i < 4; i++)
        ledger_start(ledger, &requests[i], 0);
    tokens(ledger, &requests[2], 5, LEDGER_TOKENS_DELIVERED);
    tokens(ledger, &requests[3], 7, LEDGER_TOKENS_HELD);
}

static void test_two_processes_see_each_other(void **state)
{
    struct ledger *ledger = must_open(path);
    struct ledger_request mine = request_of("mine", LEDGER_STREAM);
    struct ledger_request found;

    (void)state;
    ledger_accept(ledger, &mine);
    struct child child = start_child(work_live);
    assert_gauges(ledger, 2, 3, 7);
    assert_int_equal(check_books(ledger).accepted, 6);
    assert_true(ledger_find(ledger, "decode", &found));
    assert_int_equal(found.outcome, LEDGER_LIVE);
    assert_int_equal(found.pid, child.pid);
    assert_int_equal(found.delivered, 5);
    assert_true(ledger_last(ledger, LEDGER_STREAM, &found));
    assert_string_equal(found.id, "prefill");
    ledger_end(ledger, &mine, LEDGER_DONE, LEDGER_NOT_DETECTED);
    assert_gauges(ledger, 1, 3, 7);
    kill_child(&child);
    ledger_close(ledger);
}

/* A child that ends in order leaves its sums, and its row to the next. */
static void test_rows_are_used_again(void **state)
{
    struct ledger *ledger = must_open(path);

    (void)state;
    for (uint64_t round = 1; round <= 100; round++) { /* more than there are rows */
        struct child child = start_child(work_done);
        assert_int_equal(check_books(ledger).delivered, 10 * round);
        end_child(&child);
        assert_int_equal(check_books(ledger).delivered, 10 * round);
    }
    ledger_close(ledger);
}

/* What work_live leaves when it is killed. */
static void assert_settled(struct ledger *ledger, uint64_t rounds)
{
    static const char *const ids[] = {"queued", "prefill", "decode", "held"};
    static const uint64_t discarded[] = {0, 0, 0, 7};
    struct ledger_totals totals = check_books(ledger);
    struct ledger_request found;

    assert_int_equal(totals.accepted, 5 * rounds);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
    assert_int_equal(books_ended(&totals, LEDGER_DONE), rounds);
    assert_int_equal(books_ended(&totals, LEDGER_FAILED), 4 * rounds);
    assert_int_equal(totals.generated, 22 * rounds);
    assert_int_equal(totals.delivered, 15 * rounds);
    assert_int_equal(totals.discarded, 7 * rounds);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_true(ledger_find(ledger, ids[i], &found));
        assert_int_equal(found.outcome, LEDGER_FAILED);
        assert_int_equal(found.discarded, discarded[i]);
        assert_int_equal(found.generated, found.delivered + found.discarded);
    }
    assert_true(ledger_find(ledger, "child-done", &found));
    assert_int_equal(found.outcome, LEDGER_DONE);
}

static void test_a_killed_process_leaves_no_ghosts(void **state)
{
    struct ledger *reader = must_open(path);

    (void)state;
    for (uint64_t round = 1; round <= 3; round++) {
        struct child child = start_child(work_live);
        assert_gauges(reader, 1, 3, 7);
        kill_child(&child);
        assert_settled(reader, round); /* by the next reader */

        struct ledger *next = must_open(path);
        assert_settled(next, round); /* by the next process, for good */
        assert_settled(reader, round);
        struct ledger_totals totals = check_books(next);
        assert_int_equal(totals.ended[LEDGER_CHAT][LEDGER_FAILED], round);
        assert_int_equal(totals.ended[LEDGER_STREAM][LEDGER_FAILED], round);
        assert_int_equal(totals.ended[LEDGER_COMPLETIONS][LEDGER_FAILED], round);
        assert_int_equal(totals.ended[LEDGER_GENERATE][LEDGER_FAILED], round);
        ledger_close(next);
    }
    ledger_close(reader);
}

/* Killed, but nobody has waited for it: its pid is still there, and it is dead all the same. */
static void test_a_zombie_is_dead(void **state)
{
    struct ledger *reader = must_open(path);
    struct child child = start_child(work_live);
    siginfo_t info;

    (void)state;
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    struct ledger_totals totals = check_books(reader);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    forget_child(&child);
    ledger_close(reader);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
}

static struct file *map_file(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    struct file *file =
        mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(file != MAP_FAILED);
    close(fd);
    return file;
}

static struct row *row_of(struct file *file, pid_t pid)
{
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        if (atomic_load(&file->row[i].pid) == pid)
            return &file->row[i];
    }
    fail_msg("no row of process %d", (int)pid);
    return NULL;
}

/* The dead one's pid is now somebody else's, who started at another time. */
static void test_a_pid_that_is_used_again(void **state)
{
    struct child dead = start_child(work_live);
    struct file *file = map_file();
    struct row *row = row_of(file, dead.pid);

    (void)state;
    kill_child(&dead);
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        pause();
        _exit(0);
    }
    for (unsigned i = 0; i < LEDGER_RING; i++) {
        if (atomic_load(&file->record[i].owner) != 0)
            atomic_store(&file->record[i].fields[FIELD_PID], (uint64_t)other);
    }
    atomic_store(&row->pid, (int32_t)other);
    atomic_fetch_sub(&row->pid_started, 1);
    struct ledger *next = must_open(path);
    assert_settled(next, 1);
    ledger_close(next);
    munmap(file, sizeof(*file));
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

/* It died between two stores of a transition: which one, is a row. */
static void test_killed_within_a_transition(void **state)
{
    static const struct {
        int counter;
        int64_t add;
        uint64_t accepted, generated, delivered, discarded;
    } rows[] = {
        {COUNT_ACCEPTED, 0, 5, 22, 15, 7}, /* nothing stored yet, but inside */
        {COUNT_ACCEPTED, 1, 6, 22, 15, 7},
        {COUNT_QUEUED, -1, 5, 22, 15, 7}, /* left the queue, not yet running */
        {COUNT_RUNNING, -1, 5, 22, 15, 7},
        {COUNT_GENERATED, 1, 5, 23, 15, 8},
        {COUNT_DELIVERED, 1, 5, 22, 16, 6},
        {COUNT_DISCARDED, 7, 5, 22, 15, 7},
        {COUNT_DELIVERED, 100, 5, 115, 115, 0}, /* nothing is lost from what was delivered */
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct child child = start_child(work_live);
        struct file *file = map_file();
        struct row *theirs = row_of(file, child.pid);

        kill_child(&child);
        atomic_fetch_add(&theirs->sequence, 1);
        atomic_fetch_add(&theirs->counters[rows[row].counter], (uint64_t)rows[row].add);
        munmap(file, sizeof(*file));
        struct ledger *next = must_open(path);
        struct ledger *reader = must_open(path);
        for (int i = 0; i < 2; i++) {
            struct ledger_totals totals = check_books(i == 0 ? next : reader);
            if (totals.accepted != rows[row].accepted ||
                totals.generated != rows[row].generated ||
                totals.delivered != rows[row].delivered ||
                totals.discarded != rows[row].discarded ||
                totals.queued + totals.running + totals.held != 0)
                fail_msg(
                    "row %zu: accepted %llu generated %llu delivered %llu discarded %llu", row,
                    (unsigned long long)totals.accepted, (unsigned long long)totals.generated,
                    (unsigned long long)totals.delivered, (unsigned long long)totals.discarded);
        }
        run_request(next, "goes on", LEDGER_STREAM, 1);
        assert_int_equal(check_books(reader).accepted, rows[row].accepted + 1);
        ledger_close(reader);
        ledger_close(next);
        assert_int_equal(unlink(path), 0);
    }
}

/* A reader meets the same before anybody has settled it: it does not wait for the dead. */
static void test_a_reader_of_a_row_that_was_left_odd(void **state)
{
    struct ledger *reader = must_open(path);
    struct child child = start_child(work_live);
    struct file *file = map_file();
    struct row *theirs = row_of(file, child.pid);

    (void)state;
    kill_child(&child);
    atomic_fetch_add(&theirs->sequence, 1);
    atomic_fetch_add(&theirs->counters[COUNT_GENERATED], 1);
    struct ledger_totals totals = check_books(reader);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
    assert_int_equal(totals.discarded, 8);
    munmap(file, sizeof(*file));
    ledger_close(reader);
}

/* A record whose writer died inside is not readable, and usable again after all have ended. */
static void test_a_record_that_was_left_odd(void **state)
{
    struct ledger *ledger = must_open(path);
    struct ledger_request found;

    (void)state;
    run_request(ledger, "a", LEDGER_STREAM, 1);
    run_request(ledger, "b", LEDGER_STREAM, 1);
    struct file *file = map_file();
    atomic_fetch_add(&file->record[2].lock, 1); /* of request 2 */
    assert_false(ledger_find(ledger, "b", &found));
    assert_true(ledger_find(ledger, "a", &found));
    assert_true(ledger_last(ledger, LEDGER_STREAM, &found));
    assert_string_equal(found.id, "a");
    ledger_close(ledger);
    ledger = must_open(path);
    for (int i = 0; i < LEDGER_RING; i++)
        run_request(ledger, i == LEDGER_RING - 1 ? "c" : "x", LEDGER_STREAM, 1);
    assert_true(ledger_find(ledger, "c", &found));
    assert_int_equal(found.sequence % LEDGER_RING, 2);
    munmap(file, sizeof(*file));
    ledger_close(ledger);
}

/* In bursts, until it is killed; between them a reader finds the row at rest. */
static void work_for_ever(struct ledger *ledger)
{
    enum { BURST = 8 };
    const struct timespec rest = {.tv_nsec = 20000};
    struct ledger_request requests[8];

    for (int i = 0; i < 8; i++)
        requests[i] = request_of("churn", (enum ledger_route)(i % LEDGER_ROUTES));
    for (unsigned round = 0;; round++) {
        struct ledger_request *one = &requests[round % 8];
        if (round % BURST == 0)
            nanosleep(&rest, NULL);
        if (one->sequence != 0 && one->outcome == LEDGER_LIVE)
            ledger_end(ledger, one, LEDGER_DONE, LEDGER_NOT_DETECTED);
        ledger_accept(ledger, one);
        if (round % 5 != 0) {
            ledger_start(ledger, one, 0);
            tokens(ledger, one, 3, LEDGER_TOKENS_DELIVERED);
            tokens(ledger, one, 2, LEDGER_TOKENS_HELD);
        }
    }
}

static void test_killed_at_any_time(void **state)
{
    enum { ROUNDS = 60 / FEWER };
    struct ledger *reader = must_open(path);
    uint64_t accepted = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            char error[LEDGER_ERROR_MAX_BYTES];
            struct ledger *ledger = ledger_open(path, error);
            if (ledger != NULL)
                work_for_ever(ledger);
            _exit(1);
        }
        /* Until it has done something, and then a little more, each time another little. */
        uint64_t goal = accepted + 10 + (uint64_t)round * 7;
        while (check_books(reader).accepted < goal)
            assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        struct ledger_totals totals = check_books(reader);
        assert_int_equal(totals.queued + totals.running + totals.held, 0);
        accepted = totals.accepted;
    }
    struct ledger *next = must_open(path);
    assert_int_equal(check_books(next).accepted, accepted);
    ledger_close(next);
    ledger_close(reader);
}

static void test_64_rows_and_no_more(void **state)
{
    struct ledger *ledgers[LEDGER_ROWS];
    char error[LEDGER_ERROR_MAX_BYTES] = "";

    (void)state;
    for (int i = 0; i < LEDGER_ROWS; i++) {
        ledgers[i] = must_open(path);
        run_request(ledgers[i], "x", LEDGER_STREAM, 1);
    }
    assert_null(ledger_open(path, error));
    assert_non_null(strstr(error, path));
    assert_non_null(strstr(error, "64"));
    assert_int_equal(check_books(ledgers[0]).accepted, LEDGER_ROWS);
    ledger_close(ledgers[17]);
    ledgers[17] = must_open(path);
    assert_int_equal(check_books(ledgers[17]).accepted, LEDGER_ROWS);
    for (int i = 0; i < LEDGER_ROWS; i++)
        ledger_close(ledgers[i]);
}

/* --- files that are no ledger --- */

static void assert_refused(const char *file, const char *says)
{
    char error[LEDGER_ERROR_MAX_BYTES] = "";
    struct ledger *ledger = ledger_open(file, error);

    if (ledger != NULL) {
        ledger_close(ledger);
        fail_msg("%s was taken", file);
    }
    if (strstr(error, "--state") == NULL || strstr(error, file) == NULL ||
        strstr(error, says) == NULL)
        fail_msg("%s", error);
}

static void test_other_files_are_refused_and_left_alone(void **state)
{
    static const struct {
        const char *what;
        size_t offset; /* of a damaged byte of a true ledger */
        long cut;      /* bytes less (or more) */
    } rows[] = {
        {"magic", 0, 0},
        {"magic's end", 7, 0},
        {"version", offsetof(struct file, version), 0},
        {"rows", offsetof(struct file, rows), 0},
        {"ring", offsetof(struct file, ring), 0},
        {"size", offsetof(struct file, file_bytes), 0},
        {"truncated", SIZE_MAX, 1},
        {"half", SIZE_MAX, sizeof(struct file) / 2},
        {"one byte", SIZE_MAX, sizeof(struct file) - 1},
        {"too long", SIZE_MAX, -1},
    };

    (void)state;
    struct ledger *ledger = must_open(path);
    run_request(ledger, "a", LEDGER_STREAM, 1);
    ledger_close(ledger);
    size_t len;
    char *whole = scratch_read(path, &len);
    assert_int_equal(len, sizeof(struct file));
    whole = realloc(whole, len + 1);
    assert_non_null(whole);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t size = (size_t)((long)len - rows[row].cut);
        size_t after;
        if (rows[row].offset != SIZE_MAX)
            whole[rows[row].offset] ^= 1;
        scratch_write(path, whole, size);
        assert_refused(path, "not a ledger of this version");
        char *left = scratch_read(path, &after);
        assert_int_equal(after, size);
        assert_memory_equal(left, whole, size);
        free(left);
        if (rows[row].offset != SIZE_MAX)
            whole[rows[row].offset] ^= 1;
    }
    /* All zeros of the right size, and somebody's notes. */
    memset(whole, 0, len);
    scratch_write(path, whole, len);
    assert_refused(path, "not a ledger of this version");
    free(whole);
    scratch_write(path, "notes\n", 6);
    assert_refused(path, "not a ledger of this version");
    char *notes = scratch_read(path, NULL);
    assert_string_equal(notes, "notes\n");
    free(notes);
}

static void test_an_empty_file_becomes_a_ledger(void **state)
{
    (void)state;
    scratch_write(path, "", 0);
    struct ledger *ledger = must_open(path);
    run_request(ledger, "a", LEDGER_STREAM, 1);
    ledger_close(ledger);
    ledger = must_open(path);
    assert_int_equal(check_books(ledger).accepted, 1);
    ledger_close(ledger);
}

static void test_paths_that_cannot_be_opened(void **state)
{
    char file[200];

    (void)state;
    snprintf(file, sizeof(file), "%s/no/such/folder", scratch.folder);
    assert_refused(file, "No such file or directory");
    assert_refused(scratch.folder, "Is a directory");
    snprintf(file, sizeof(file), "%s/state/below-a-file", scratch.folder);
    scratch_write(path, "x", 1);
    assert_refused(file, "Not a directory");
}

/* What is no file of ours to make is not ours to remove (think of /dev/null). */
static void test_a_special_file_is_left_where_it_is(void **state)
{
    char error[LEDGER_ERROR_MAX_BYTES] = "";
    struct stat status;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(ledger_open(path, error));
    assert_non_null(strstr(error, path));
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

/* In a mount namespace of its own: 64 KiB are not enough, and it is told at the start. */
static void test_a_full_disk(void **state)
{
    enum { SKIPPED = 77 };
    pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        char error[LEDGER_ERROR_MAX_BYTES] = "";
        struct stat left;
        if (unshare(CLONE_NEWNS) != 0 ||
            mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", scratch.folder, "tmpfs", 0, "size=64k") != 0)
            _exit(SKIPPED);
        for (int existed = 0; existed < 2; existed++) {
            if (existed)
                scratch_write(path, "", 0);
            if (ledger_open(path, error) != NULL)
                _exit(1);
            if (strstr(error, "--state: no room for") == NULL || strstr(error, path) == NULL ||
                strstr(error, strerror(ENOSPC)) == NULL)
                _exit(2);
            /* Nothing half-made stays: with room, the next start begins anew. */
            if (stat(path, &left) == 0 && left.st_size != 0)
                _exit(3);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- threads --- */

struct watch {
    struct ledger *ledger;
    atomic_bool stop;
    uint64_t snapshots, unbalanced, backward, mixed, ahead;
};

/* Every snapshot satisfies the equations, and no sum ever goes back. */
static void *watch_totals(void *context)
{
    struct watch *watch = context;
    struct ledger_totals before = {0};

    while (!atomic_load(&watch->stop)) {
        struct ledger_totals totals;
        ledger_read_totals(watch->ledger, &totals);
        if (!books_balance(&totals))
            watch->unbalanced++;
        if (totals.accepted < before.accepted || totals.generated < before.generated ||
            totals.delivered < before.delivered || totals.discarded < before.discarded)
            watch->backward++;
        before = totals;
        watch->snapshots++;
    }
    return NULL;
}

/* Every record that is found is one request's, whole. */
static void *watch_records(void *context)
{
    struct watch *watch = context;
    uint64_t last = 0;

    while (!atomic_load(&watch->stop)) {
        struct ledger_request found;
        char id[32];
        if (!ledger_last(watch->ledger, LEDGER_STREAM, &found))
            continue;
        snprintf(id, sizeof(id), "r%llu", (unsigned long long)found.requested);
        if (strcmp(id, found.id) != 0 || found.outcome == LEDGER_FAILED || found.generated > 8)
            watch->mixed++;
        if (found.delivered + found.discarded > found.generated)
            watch->ahead++;
        if (found.sequence < last)
            watch->backward++;
        last = found.sequence;
        watch->snapshots++;
    }
    return NULL;
}

static void test_readers_beside_a_writer(void **state)
{
    enum { TRANSITIONS = 1000000 / FEWER };
    struct ledger *ledger = must_open(path);
    struct watch watches[2] = {{.ledger = ledger}, {.ledger = ledger}};
    pthread_t threads[2];
    uint64_t done = 0;

    (void)state;
    assert_int_equal(pthread_create(&threads[0], NULL, watch_totals, &watches[0]), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, watch_records, &watches[1]), 0);
    for (uint64_t number = 0; done < TRANSITIONS; number++) {
        struct ledger_request one = request_of("", LEDGER_STREAM);
        snprintf(one.id, sizeof(one.id), "r%llu", (unsigned long long)number);
        one.requested = number;
        ledger_accept(ledger, &one);
        ledger_start(ledger, &one, 0);
        tokens(ledger, &one, 4, LEDGER_TOKENS_DELIVERED);
        tokens(ledger, &one, 2, LEDGER_TOKENS_HELD);
        ledger_settle_held(ledger, &one, 0, number % 2 == 0);
        tokens(ledger, &one, 1, LEDGER_TOKENS_DISCARDED);
        tokens(ledger, &one, 1, LEDGER_TOKENS_HELD);
        ledger_end(ledger, &one, number % 3 == 0 ? LEDGER_CANCELLED : LEDGER_DONE,
                   LEDGER_NOT_DETECTED);
        done += 12;
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&watches[i].stop, true);
        pthread_join(threads[i], NULL);
        assert_true(watches[i].snapshots > 0);
        assert_int_equal(watches[i].unbalanced, 0);
        assert_int_equal(watches[i].backward, 0);
        assert_int_equal(watches[i].mixed, 0);
    }
    print_message("%llu transitions, %llu snapshots, %llu records read\n",
                  (unsigned long long)done, (unsigned long long)watches[0].snapshots,
                  (unsigned long long)watches[1].snapshots);
    assert_gauges(ledger, 0, 0, 0);
    ledger_close(ledger);
    /* No reader may meet a request of which more was delivered than generated. */
    assert_int_equal(watches[1].ahead, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scratch, close_scratch)
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_every_transition_counts_once),
        TEST(test_every_end),
        TEST(test_find_and_last),
        TEST(test_the_ring_goes_round),
        TEST(test_memory_is_of_one_process_alone),
        TEST(test_totals_go_on_after_a_restart),
        TEST(test_the_file_is_private_to_user_and_group),
        TEST(test_two_processes_see_each_other),
        TEST(test_rows_are_used_again),
        TEST(test_a_killed_process_leaves_no_ghosts),
        TEST(test_a_zombie_is_dead),
        TEST(test_a_pid_that_is_used_again),
        TEST(test_killed_within_a_transition),
        TEST(test_a_reader_of_a_row_that_was_left_odd),
        TEST(test_a_record_that_was_left_odd),
        TEST(test_killed_at_any_time),
        TEST(test_64_rows_and_no_more),
        TEST(test_other_files_are_refused_and_left_alone),
        TEST(test_an_empty_file_becomes_a_ledger),
        TEST(test_paths_that_cannot_be_opened),
        TEST(test_a_special_file_is_left_where_it_is),
        TEST(test_a_full_disk),
        TEST(test_readers_beside_a_writer),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
