#ifndef RUNNEL_LOAD_HELP_H
#define RUNNEL_LOAD_HELP_H

/* The texts of --help and --version. */
extern const char help_text[];
extern const char version_text[];

#endif
