#ifndef RUNNEL_TESTS_UNIT_SCRATCH_H
#define RUNNEL_TESTS_UNIT_SCRATCH_H

/*
 * A folder of one test's own, which is empty when the test begins and gone when it ends, and
 * whole files as strings. For tests alone: anything that goes wrong here ends the process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char folder[64];
    char path[128]; /* of the file that scratch_file named last */
};

static inline void scratch_die(const char *what)
{
    perror(what);
    abort();
}

static inline void scratch_open(struct scratch *scratch)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/runnel-unit-XXXXXX");
    if (mkdtemp(scratch->folder) == NULL)
        scratch_die("mkdtemp");
}

/* The path of `name` in the folder, good until the next call. */
static inline const char *scratch_file(struct scratch *scratch, const char *name)
{
    snprintf(scratch->path, sizeof(scratch->path), "%s/%s", scratch->folder, name);
    return scratch->path;
}

static inline void scratch_close(struct scratch *scratch)
{
    DIR *folder = opendir(scratch->folder);

    if (folder == NULL)
        scratch_die(scratch->folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    rmdir(scratch->folder);
}

static inline void scratch_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fwrite(bytes, 1, len, file) != len || fclose(file) != 0)
        scratch_die(path);
}

/* The whole file with a NUL behind it, to be freed; `*len` may be NULL. */
static inline char *scratch_read(const char *path, size_t *len)
{
    struct stat status;
    FILE *file = fopen(path, "r");

    if (file == NULL || fstat(fileno(file), &status) != 0)
        scratch_die(path);
    size_t size = (size_t)status.st_size;
    char *text = malloc(size + 1);
    if (text == NULL || fread(text, 1, size, file) != size)
        scratch_die(path);
    fclose(file);
    text[size] = '\0';
    if (len != NULL)
        *len = size;
    return text;
}

#endif
