/*
 * Rows, records, and the opening of the file that holds them; see ledger_file.h for the
 * locking.
 */

#include "engine/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"

enum {
    READ_TRIES = 50, /* in which a writer that runs is done; then it is waited for */
    ENTER_TRIES = 1000,
    READ_NAP_US = 100,
    READ_NAPS_MAX = 2500, /* a quarter of a second */
};

static const char ledger_magic[8] = {'R', 'U', 'N', 'N', 'E', 'L', 'L', 'G'};

bool ledger_row_is_dead(struct row *row)
{
    int32_t pid = atomic_load(&row->pid);

    return pid != 0 && !process_is_alive(pid, atomic_load(&row->pid_started));
}

/* --- rows: one writer, which never waits --- */

void ledger_row_begin(struct row *row)
{
    uint64_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);

    atomic_store_explicit(&row->sequence, sequence + 1, memory_order_relaxed);
}

void ledger_row_commit(struct row *row)
{
    uint64_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);

    atomic_store_explicit(&row->sequence, sequence + 1, memory_order_release);
}

void ledger_row_add(struct row *row, unsigned counter, uint64_t add)
{
    uint64_t value = atomic_load_explicit(&row->counters[counter], memory_order_relaxed);

    atomic_store_explicit(&row->counters[counter], value + add, memory_order_release);
}

static bool try_to_read(struct row *row, uint64_t counters[COUNTERS])
{
    uint64_t before = atomic_load_explicit(&row->sequence, memory_order_acquire);

    for (unsigned i = 0; i < COUNTERS; i++)
        counters[i] = atomic_load_explicit(&row->counters[i], memory_order_acquire);
    uint64_t after = atomic_load_explicit(&row->sequence, memory_order_relaxed);
    return before == after && before % 2 == 0;
}

/*
 * A reader found the writer inside for the `tries`th time: wait a little, or give up. It stays
 * inside while it is preempted, for as long as it is stopped, and for ever when it died there;
 * a stopped or dead one must not stop its readers. true: look again.
 */
static bool wait_for_writer(unsigned tries, int32_t pid)
{
    const struct timespec nap = {.tv_nsec = READ_NAP_US * 1000};

    if (tries < READ_TRIES) {
        sched_yield();
        return true;
    }
    if (tries >= READ_TRIES + READ_NAPS_MAX || !process_is_running(pid))
        return false;
    nanosleep(&nap, NULL);
    return true;
}

/* No more can have been handed on or thrown away than was made. */
static void cover_tokens(uint64_t counters[COUNTERS])
{
    uint64_t accounted = counters[COUNT_DELIVERED] + counters[COUNT_DISCARDED];

    if (counters[COUNT_GENERATED] < accounted)
        counters[COUNT_GENERATED] = accounted;
}

/* A row in the middle of one transition: as if that had happened, or had not. */
static void reconcile(uint64_t counters[COUNTERS])
{
    uint64_t requests = counters[COUNT_QUEUED] + counters[COUNT_RUNNING];

    for (unsigned i = COUNT_ENDED; i < COUNT_HISTOGRAMS; i++)
        requests += counters[i];
    counters[COUNT_ACCEPTED] = requests;
    cover_tokens(counters);
}

void ledger_row_read(struct row *row, uint64_t counters[COUNTERS])
{
    unsigned tries = 1;
    bool whole;

    while (!(whole = try_to_read(row, counters)) &&
           wait_for_writer(tries, atomic_load(&row->pid)))
        tries++;
    if (ledger_row_is_dead(row)) /* as the next process will, from the same figures */
        ledger_settle_counters(counters);
    else if (!whole)
        reconcile(counters);
}

void ledger_settle_counters(uint64_t counters[COUNTERS])
{
    uint64_t ended = 0;

    for (unsigned i = COUNT_ENDED; i < COUNT_HISTOGRAMS; i++)
        ended += counters[i];
    if (counters[COUNT_ACCEPTED] < ended)
        counters[COUNT_ACCEPTED] = ended;
    /* Which route the live ones had is told by the ring alone, and not for ever: see
     * settle_row. */
    counters[ledger_ended_index(LEDGER_STREAM, LEDGER_FAILED)] +=
        counters[COUNT_ACCEPTED] - ended;
    counters[COUNT_QUEUED] = counters[COUNT_RUNNING] = counters[COUNT_SLOTS] = 0;
    cover_tokens(counters);
    counters[COUNT_DISCARDED] = counters[COUNT_GENERATED] - counters[COUNT_DELIVERED];
}

/* --- records of the ring --- */

/*
 * Enter as the writer, for the request `owner`; false when the place went to a later request,
 * or its writer stays inside. Another process is inside only when the ring went round within
 * one write, and for less than a microsecond; if it died there, the place is lost until all
 * processes have ended.
 */
static bool record_enter(struct record *record, uint64_t owner)
{
    for (unsigned tries = 0; tries < ENTER_TRIES; tries++) {
        uint64_t lock = atomic_load_explicit(&record->lock, memory_order_acquire);
        if (atomic_load_explicit(&record->owner, memory_order_relaxed) > owner)
            return false;
        if (lock % 2 != 0 ||
            !atomic_compare_exchange_weak_explicit(&record->lock, &lock, lock + 1,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        if (atomic_load_explicit(&record->owner, memory_order_relaxed) <= owner)
            return true;
        atomic_fetch_add_explicit(&record->lock, 1, memory_order_release);
        return false;
    }
    return false;
}

static void record_leave(struct record *record)
{
    atomic_fetch_add_explicit(&record->lock, 1, memory_order_release);
}

static uint64_t record_get(struct record *record, enum field field)
{
    return atomic_load_explicit(&record->fields[field], memory_order_acquire);
}

struct record *ledger_record_of(struct ledger *ledger, uint64_t sequence)
{
    return &ledger->file->record[sequence % LEDGER_RING];
}

static void record_store(struct record *record, const struct ledger_request *request)
{
    ledger_record_set(record, FIELD_ROUTE, request->route);
    ledger_record_set(record, FIELD_OUTCOME, request->outcome);
    ledger_record_set(record, FIELD_PHASE, request->phase);
    ledger_record_set(record, FIELD_DETECTOR, request->detected_by);
    ledger_record_set(record, FIELD_REQUESTED, request->requested);
    ledger_record_set(record, FIELD_GENERATED, request->generated);
    ledger_record_set(record, FIELD_DELIVERED, request->delivered);
    ledger_record_set(record, FIELD_DISCARDED, request->discarded);
    ledger_record_set(record, FIELD_ACCEPTED_WALL, (uint64_t)request->accepted_wall_us);
    ledger_record_set(record, FIELD_TTFT, (uint64_t)request->ttft_us);
    ledger_record_set(record, FIELD_DURATION, (uint64_t)request->duration_us);
    ledger_record_set(record, FIELD_PACE_ERROR, (uint64_t)request->pace_error_p99_us);
    ledger_record_set(record, FIELD_PID, (uint64_t)request->pid);
}

void ledger_record_publish(struct ledger *ledger, const struct ledger_request *request)
{
    struct record *record = ledger_record_of(ledger, request->sequence);
    uint64_t words[ID_WORDS] = {0};

    if (!record_enter(record, request->sequence))
        return;
    memcpy(words, request->id, sizeof(request->id));
    atomic_store_explicit(&record->owner, request->sequence, memory_order_release);
    for (unsigned i = 0; i < ID_WORDS; i++)
        atomic_store_explicit(&record->id[i], words[i], memory_order_release);
    record_store(record, request);
    record_leave(record);
}

static void record_load(struct record *record, struct ledger_request *request)
{
    uint64_t words[ID_WORDS];

    for (unsigned i = 0; i < ID_WORDS; i++)
        words[i] = atomic_load_explicit(&record->id[i], memory_order_acquire);
    memcpy(request->id, words, sizeof(request->id));
    request->id[LEDGER_ID_MAX_BYTES] = '\0';
    request->route = (enum ledger_route)record_get(record, FIELD_ROUTE);
    request->outcome = (enum ledger_outcome)record_get(record, FIELD_OUTCOME);
    request->phase = (enum ledger_phase)record_get(record, FIELD_PHASE);
    request->detected_by = (enum ledger_detector)record_get(record, FIELD_DETECTOR);
    request->requested = record_get(record, FIELD_REQUESTED);
    /* Token counts are stored without the lock, `generated` first: read it last, and there are
     * never more delivered than generated. */
    request->delivered = record_get(record, FIELD_DELIVERED);
    request->discarded = record_get(record, FIELD_DISCARDED);
    request->generated = record_get(record, FIELD_GENERATED);
    request->accepted_wall_us = (int64_t)record_get(record, FIELD_ACCEPTED_WALL);
    request->ttft_us = (int64_t)record_get(record, FIELD_TTFT);
    request->duration_us = (int64_t)record_get(record, FIELD_DURATION);
    request->pace_error_p99_us = (int64_t)record_get(record, FIELD_PACE_ERROR);
    request->pid = (int32_t)record_get(record, FIELD_PID);
}

bool ledger_record_read(struct ledger *ledger, uint64_t sequence,
                        struct ledger_request *request)
{
    struct record *record = ledger_record_of(ledger, sequence);

    request->sequence = sequence;
    for (unsigned tries = 1;; tries++) {
        uint64_t before = atomic_load_explicit(&record->lock, memory_order_acquire);
        uint64_t owner = atomic_load_explicit(&record->owner, memory_order_acquire);
        record_load(record, request);
        uint64_t after = atomic_load_explicit(&record->lock, memory_order_relaxed);
        if (before == after && before % 2 == 0)
            return owner == sequence;
        if (!wait_for_writer(tries, request->pid))
            return false;
    }
}

/* --- opening --- */

static struct row *find_free_row(struct file *file)
{
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        if (atomic_load(&file->row[i].pid) == 0)
            return &file->row[i];
    }
    return NULL;
}

/* Live requests of the dead process, by route, moved from `stream` to where they belong. */
static void settle_ring(struct ledger *ledger, int32_t pid, uint64_t counters[COUNTERS])
{
    uint64_t *assumed = &counters[ledger_ended_index(LEDGER_STREAM, LEDGER_FAILED)];
    struct ledger_request request;

    for (unsigned i = 0; i < LEDGER_RING; i++) {
        uint64_t owner = atomic_load(&ledger->file->record[i].owner);
        if (owner == 0 || !ledger_record_read(ledger, owner, &request))
            continue;
        if (request.pid != pid || request.outcome != LEDGER_LIVE)
            continue;
        request.outcome = LEDGER_FAILED;
        request.discarded = request.generated - request.delivered;
        ledger_record_publish(ledger, &request);
        if (request.route >= LEDGER_ROUTES || *assumed == 0)
            continue;
        (*assumed)--;
        counters[ledger_ended_index(request.route, LEDGER_FAILED)]++;
    }
}

static void settle_row(struct ledger *ledger, struct row *row)
{
    uint64_t counters[COUNTERS];

    for (unsigned i = 0; i < COUNTERS; i++)
        counters[i] = atomic_load(&row->counters[i]);
    ledger_settle_counters(counters);
    settle_ring(ledger, atomic_load(&row->pid), counters);
    if (atomic_load(&row->sequence) % 2 == 0)
        ledger_row_begin(row); /* else its writer died inside, and left it odd for us */
    for (unsigned i = 0; i < COUNTERS; i++)
        atomic_store_explicit(&row->counters[i], counters[i], memory_order_release);
    atomic_store(&row->pid, 0);
    ledger_row_commit(row);
}

/* A process that died inside a record left its lock odd. Under the file's lock. */
static void settle_records(struct file *file)
{
    for (unsigned i = 0; i < LEDGER_RING; i++) {
        if (atomic_load(&file->record[i].lock) % 2 != 0)
            atomic_fetch_add(&file->record[i].lock, 1);
    }
}

/* The file's lock is held: no other process claims or settles. */
static int claim_row(struct ledger *ledger)
{
    bool alone = true;

    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        struct row *row = &ledger->file->row[i];
        if (atomic_load(&row->pid) == 0)
            continue;
        if (!ledger_row_is_dead(row))
            alone = false;
    }
    if (alone)
        settle_records(ledger->file);
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        if (ledger_row_is_dead(&ledger->file->row[i]))
            settle_row(ledger, &ledger->file->row[i]);
    }
    ledger->row = find_free_row(ledger->file);
    if (ledger->row == NULL)
        return -1;
    atomic_store(&ledger->row->pid_started, process_start_time((int32_t)getpid()));
    atomic_store(&ledger->row->pid, (int32_t)getpid());
    return 0;
}

static void write_header(struct file *file)
{
    memcpy(file->magic, ledger_magic, sizeof(ledger_magic));
    file->version = LEDGER_VERSION;
    file->rows = LEDGER_ROWS;
    file->ring = LEDGER_RING;
    file->file_bytes = sizeof(struct file);
}

static bool header_fits(const struct file *file)
{
    return memcmp(file->magic, ledger_magic, sizeof(ledger_magic)) == 0 &&
           file->version == LEDGER_VERSION && file->rows == LEDGER_ROWS &&
           file->ring == LEDGER_RING && file->file_bytes == sizeof(struct file);
}

/* Open `path`, lock it, and give it its size. The descriptor, or -1 with `error`. */
static int open_file(const char *path, bool *fresh, char error[LEDGER_ERROR_MAX_BYTES])
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);

    if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &status) != 0) {
        snprintf(error, LEDGER_ERROR_MAX_BYTES, "--state: cannot open `%.150s`: %s", path,
                 strerror(errno));
    } else if (!S_ISREG(status.st_mode) ||
               (status.st_size != 0 && status.st_size != (off_t)sizeof(struct file))) {
        snprintf(
            error, LEDGER_ERROR_MAX_BYTES,
            "--state: `%.150s` is not a ledger of this version; it was left as it is, name "
            "another file or move it away",
            path);
    } else {
        *fresh = status.st_size == 0;
        /* All blocks now: a full disk is told at the start, and not by SIGBUS at some token. */
        int failed = *fresh ? posix_fallocate(fd, 0, sizeof(struct file)) : 0;
        if (failed == 0)
            return fd;
        snprintf(error, LEDGER_ERROR_MAX_BYTES, "--state: no room for `%.150s` (%zu bytes): %s",
                 path, sizeof(struct file), strerror(failed));
        int emptied = ftruncate(fd, 0); /* as it was; never unlink what may not be ours */
        (void)emptied;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static void free_ledger(struct ledger *ledger)
{
    if (ledger->file != NULL)
        munmap(ledger->file, sizeof(struct file));
    if (ledger->fd >= 0)
        close(ledger->fd); /* and with it the lock */
    free(ledger);
}

struct ledger *ledger_open(const char *path, char error[LEDGER_ERROR_MAX_BYTES])
{
    bool in_file = path != NULL && path[0] != '\0';
    bool fresh = true;
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (ledger == NULL) {
        snprintf(error, LEDGER_ERROR_MAX_BYTES, "no memory for the ledger");
        return NULL;
    }
    ledger->fd = in_file ? open_file(path, &fresh, error) : -1;
    if (in_file && ledger->fd < 0) {
        free(ledger);
        return NULL;
    }
    ledger->file = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE,
                        in_file ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, ledger->fd, 0);
    if (ledger->file == MAP_FAILED) {
        ledger->file = NULL;
        snprintf(error, LEDGER_ERROR_MAX_BYTES, "cannot map the ledger: %s", strerror(errno));
        free_ledger(ledger);
        return NULL;
    }
    if (fresh)
        write_header(ledger->file);
    if (!header_fits(ledger->file)) {
        snprintf(
            error, LEDGER_ERROR_MAX_BYTES,
            "--state: `%.150s` is not a ledger of this version; it was left as it is, name "
            "another file or move it away",
            path);
        free_ledger(ledger);
        return NULL;
    }
    if (claim_row(ledger) != 0) {
        snprintf(error, LEDGER_ERROR_MAX_BYTES,
                 "--state: `%.150s` is in use by %d processes already", path, LEDGER_ROWS);
        free_ledger(ledger);
        return NULL;
    }
    if (in_file)
        flock(ledger->fd, LOCK_UN);
    return ledger;
}

void ledger_close(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    ledger_set_slots(ledger, 0);
    atomic_store(&ledger->row->pid, 0);
    free_ledger(ledger);
}
