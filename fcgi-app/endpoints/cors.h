#ifndef RUNNEL_ENDPOINTS_CORS_H
#define RUNNEL_ENDPOINTS_CORS_H

/*
 * Which pages of other origins may call (--cors-origin), as browsers ask for it (WHATWG Fetch,
 * section 3.2). It protects the users of browsers, not the server: whoever sends no Origin, or
 * a wrong one, is answered all the same, without the headers that let a page read the answer.
 */

struct cors;

enum { CORS_ERROR_MAX_BYTES = 300 };

/*
 * From `*`, or origins as browsers send them (`https://app.example`, `http://localhost:3000`,
 * `null`) with commas between. NULL with a sentence in `error`.
 */
struct cors *cors_create(const char *origins, char error[CORS_ERROR_MAX_BYTES]);

/* The header lines of a reply to a page of `origin` ("": there is none). They live as long as
 * `cors`. NULL: it may not call. */
const char *cors_lines(const struct cors *cors, const char *origin);

/* The lines of a reply to nobody's page, for caches. */
extern const char cors_vary[];

void cors_free(struct cors *cors);

#endif
