/* Reading the keys, and comparing with all of them. */

#include "endpoints/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A key in a fixed space, filled up with zeros, its length in the last word: two keys are the
 * same when all words are. */
enum { KEY_WORDS = KEY_MAX_BYTES / 8 + 1 };

struct key {
    uint64_t words[KEY_WORDS];
};

struct key_list {
    size_t count;
    bool is_public;
    struct key keys[KEYS_MAX];
};

struct keys {
    const char *path;
    pthread_mutex_t lock; /* guards `list` */
    struct key_list *list;
};

static void set_key(struct key *key, const char *text, size_t len)
{
    memset(key, 0, sizeof(*key));
    memcpy(key->words, text, len);
    key->words[KEY_WORDS - 1] = len;
}

static void free_list(struct key_list *list)
{
    if (list == NULL)
        return;
    explicit_bzero(list, sizeof(*list));
    free(list);
}

/* --- the file --- */

static int fail(char error[KEYS_ERROR_MAX_BYTES], const char *path, const char *why)
{
    snprintf(error, KEYS_ERROR_MAX_BYTES, "--api-key-file: `%.150s` %s", path, why);
    return -1;
}

static int fail_line(char error[KEYS_ERROR_MAX_BYTES], const char *path, size_t line,
                     const char *why)
{
    snprintf(error, KEYS_ERROR_MAX_BYTES, "--api-key-file: line %zu of `%.120s` %s", line, path,
             why);
    return -1;
}

static int open_regular(const char *path, struct stat *status, char error[KEYS_ERROR_MAX_BYTES])
{
    /* O_NONBLOCK: a FIFO without a writer would hold us for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, status) != 0) {
        fail(error, path, strerror(errno));
    } else if (!S_ISREG(status->st_mode)) {
        fail(error, path, "is no regular file");
    } else if (status->st_size > KEYS_FILE_MAX_BYTES) {
        fail(error, path, "is larger than 256 KiB");
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static int add_line(struct key_list *list, const char *text, size_t len, const char **why)
{
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
        len--;
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    if (len == 0 || *text == '#')
        return 0;
    *why = NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            *why = "has a byte that no key has; printable ASCII without spaces is allowed";
    }
    if (len > KEY_MAX_BYTES)
        *why = "is too long; keys of 1 to 240 bytes are allowed";
    if (list->count == KEYS_MAX)
        *why = "is one key too many; 1024 are allowed";
    if (*why != NULL)
        return -1;
    set_key(&list->keys[list->count++], text, len);
    return 0;
}

static int read_keys(struct key_list *list, const char *path, const char *text, size_t len,
                     char error[KEYS_ERROR_MAX_BYTES])
{
    const char *why;
    size_t line = 0;

    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t line_len = newline != NULL ? (size_t)(newline - text) - at : len - at;
        line++;
        if (add_line(list, text + at, line_len, &why) != 0)
            return fail_line(error, path, line, why);
        at += line_len + 1;
    }
    if (list->count == 0)
        return fail(error, path, "holds no key, so nobody could call");
    return 0;
}

static int read_file(struct key_list *list, const char *path, char error[KEYS_ERROR_MAX_BYTES])
{
    struct stat status;
    int fd = open_regular(path, &status, error);
    ssize_t got;
    size_t len = 0;

    if (fd < 0)
        return -1;
    list->is_public = (status.st_mode & S_IROTH) != 0;
    /* One byte more: it may have grown. */
    char *text = malloc(KEYS_FILE_MAX_BYTES + 1);
    if (text == NULL) {
        close(fd);
        return fail(error, path, "cannot be read: no memory");
    }
    while ((got = read(fd, text + len, KEYS_FILE_MAX_BYTES + 1 - len)) > 0)
        len += (size_t)got;
    close(fd);
    int result;
    if (got < 0)
        result = fail(error, path, "cannot be read");
    else if (len > KEYS_FILE_MAX_BYTES)
        result = fail(error, path, "is larger than 256 KiB");
    else
        result = read_keys(list, path, text, len, error);
    explicit_bzero(text, len);
    free(text);
    return result;
}

static struct key_list *make_list(const char *path, char error[KEYS_ERROR_MAX_BYTES])
{
    struct key_list *list = calloc(1, sizeof(*list));

    if (list == NULL) {
        fail(error, path, "cannot be read: no memory");
        return NULL;
    }
    if (read_file(list, path, error) != 0) {
        free_list(list);
        return NULL;
    }
    return list;
}

/* --- the keys --- */

struct keys *keys_open(const char *path, char error[KEYS_ERROR_MAX_BYTES])
{
    struct keys *keys = calloc(1, sizeof(*keys));

    if (keys == NULL) {
        fail(error, path, "cannot be read: no memory");
        return NULL;
    }
    keys->path = path;
    keys->list = make_list(path, error);
    if (keys->list == NULL) {
        free(keys);
        return NULL;
    }
    pthread_mutex_init(&keys->lock, NULL);
    return keys;
}

int keys_reload(struct keys *keys, char error[KEYS_ERROR_MAX_BYTES])
{
    struct key_list *list = make_list(keys->path, error);

    if (list == NULL)
        return -1;
    pthread_mutex_lock(&keys->lock);
    struct key_list *old = keys->list;
    keys->list = list;
    pthread_mutex_unlock(&keys->lock);
    free_list(old);
    return 0;
}

size_t keys_count(struct keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    size_t count = keys->list->count;
    pthread_mutex_unlock(&keys->lock);
    return count;
}

bool keys_are_public(struct keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    bool is_public = keys->list->is_public;
    pthread_mutex_unlock(&keys->lock);
    return is_public;
}

/* 1 when they are the same, else 0, without a branch that depends on it. */
static uint64_t is_same(const struct key *one, const struct key *other)
{
    uint64_t difference = 0;

    for (size_t i = 0; i < KEY_WORDS; i++)
        difference |= one->words[i] ^ other->words[i];
    /* The compiler must not find out that it could have stopped earlier. */
    __asm__ volatile("" : "+r"(difference));
    return 1 ^ ((difference | (0 - difference)) >> 63);
}

bool keys_admit(struct keys *keys, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    struct key given;
    uint64_t found = 0;

    if (strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return false;
    const char *text = authorization + sizeof(scheme) - 1;
    text += strspn(text, " ");
    size_t len = strlen(text);
    if (len == 0 || len > KEY_MAX_BYTES)
        return false; /* no key is like that, and everybody knows */
    set_key(&given, text, len);
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->list->count; i++)
        found |= is_same(&given, &keys->list->keys[i]);
    pthread_mutex_unlock(&keys->lock);
    explicit_bzero(&given, sizeof(given));
    return found != 0;
}

void keys_close(struct keys *keys)
{
    if (keys == NULL)
        return;
    free_list(keys->list);
    pthread_mutex_destroy(&keys->lock);
    free(keys);
}
