# runnel: what is built, and how it is proven. `make help` lists the targets.
#
# Every build has a folder of its own under $(BUILD), so that the plain, the ASan and the TSan
# objects never meet: `make asan` is this same file with SAN=asan.

SAN     ?= none
BUILD   := build$(if $(filter-out none,$(SAN)),/$(SAN))
OBJ     := $(BUILD)/obj
BIN     := $(BUILD)/bin
PREFIX  ?= /usr/local
CI      ?=

CC      ?= cc
OPT     ?= -O2
CSTD    := -std=c11 -D_GNU_SOURCE
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wformat=2 -Wundef -Wpointer-arith -Wvla $(if $(CI),-Werror)
SANFLAGS_none :=
SANFLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS_tsan := -fsanitize=thread -fno-omit-frame-pointer
SANFLAGS := $(SANFLAGS_$(SAN))

# pkg-config where it knows the library, the plain -l where it does not (libunistring has no .pc).
pkg_cflags = $(shell pkg-config --cflags $(1) 2>/dev/null)
pkg_libs   = $(shell pkg-config --libs $(1) 2>/dev/null || echo $(2))

CPPFLAGS += -I. -Ifcgi-app $(call pkg_cflags,libcjson) $(call pkg_cflags,libxxhash)
CFLAGS   += $(CSTD) $(OPT) -g $(WARN) $(SANFLAGS) -pthread -MMD -MP
LDFLAGS  += $(SANFLAGS) -pthread
LIBS_gen    := $(call pkg_libs,libxxhash,-lxxhash) -lunistring
LIBS_runnel := $(call pkg_libs,fcgi,-lfcgi) $(call pkg_libs,libcjson,-lcjson) $(LIBS_gen) -lm
LIBS_load   := $(call pkg_libs,libcurl,-lcurl) $(call pkg_libs,libcjson,-lcjson) $(LIBS_gen) -lm
LIBS_test   := $(call pkg_libs,cmocka,-lcmocka)

# What lab, test and test-all build, they build on all processors, unless make was told itself: MAKEFLAGS
# has its -j only when a recipe runs, so this is expanded late.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# `make V=1` shows the commands.
quiet = $(if $(V),,@echo '  $(1)  ' $@;)

# One list a room: a new file in a room needs no line here.
SRC_base := $(wildcard fcgi-app/base/*.c)
SRC_gen  := gen/tokgen.c $(wildcard gen/tokgen_*.c)
SRC_app  := $(filter-out fcgi-app/main.c,$(wildcard fcgi-app/*.c)) \
            $(wildcard fcgi-app/fastcgi/*.c fcgi-app/endpoints/*.c fcgi-app/engine/*.c fcgi-app/wire/*.c)
SRC_load := $(filter-out gen/load/main.c,$(wildcard gen/load/*.c))
SRC_test := $(wildcard tests/unit/test_*.c)

OBJ_lib   := $(patsubst %.c,$(OBJ)/%.o,$(SRC_base) $(SRC_gen) $(SRC_app))
OBJ_gen   := $(patsubst %.c,$(OBJ)/%.o,$(SRC_base) $(SRC_gen) gen/gen.c)
OBJ_load  := $(patsubst %.c,$(OBJ)/%.o,$(SRC_base) $(SRC_gen) $(SRC_load))
TEST_BINS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(SRC_test))

all: $(BIN)/gen $(BIN)/runnel $(BIN)/load

$(BIN)/gen: $(OBJ_gen)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_gen)

$(BIN)/runnel: $(OBJ)/fcgi-app/main.o $(OBJ_lib)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runnel)

$(BIN)/load: $(OBJ)/gen/load/main.o $(OBJ_load)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_load)

$(BUILD)/tests/test_load_%: $(OBJ)/tests/unit/test_load_%.o $(OBJ_load)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_load) $(LIBS_test)

$(BUILD)/tests/test_%: $(OBJ)/tests/unit/test_%.o $(OBJ_lib)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runnel) $(LIBS_test)

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

unit-binaries: $(TEST_BINS)

# --- the README's two commands ---

lab: deps
	@$(MAKE) --no-print-directory $(JOBS) all
	@scripts/up
	@scripts/lab

test: deps-test
	@$(MAKE) --no-print-directory $(JOBS) all sanitized
	@tests/run lint unit tsan scripts integration

# --- what they are made of ---

deps:
	@scripts/deps

deps-test:
	@scripts/deps --test

up: all
	@scripts/up

down:
	@scripts/down

# What takes longer than make test should: the integration suite once more, against the responder
# under each sanitizer; clients from the registries; the beds of real proxies; the live page; the
# abort storm.
test-all: deps-test
	@scripts/deps --clients
	@$(MAKE) --no-print-directory $(JOBS) all sanitized
	RUNNEL=build/asan/bin/runnel tests/run integration
	RUNNEL=build/tsan/bin/runnel tests/run integration
	@tests/clients/setup
	@tests/loadtools/setup
	@tests/tools/setup
	@tests/proxies/setup
	@tests/bench/setup
	@tests/run clients browser loadtools proxies bench storm metrics

clients: all
	@scripts/deps --clients
	@tests/clients/setup
	@tests/run clients

browser: all
	@scripts/deps --clients
	@tests/clients/setup
	@tests/run browser

loadtools: all
	@scripts/deps --clients
	@tests/loadtools/setup
	@tests/run loadtools

storm: all
	@tests/run storm

proxies: all
	@tests/proxies/setup
	@scripts/proxies run

# runnel and others behind the same nginx; what it measures is in build/bench.
bench: all
	@scripts/deps --test --clients
	@tests/bench/setup
	@tests/bench/run

check: all sanitized
	@tests/run lint unit tsan scripts

lint: all
	@tests/run lint

unit: asan
	@tests/run unit

scripts-test: all
	@tests/run scripts

integration: all
	@tests/run integration

asan:
	@$(MAKE) --no-print-directory SAN=asan all unit-binaries

# Under TSan the tests that have threads, or share the ledger with somebody who has.
TSAN_TESTS := $(filter $(SRC_test:tests/unit/%.c=%),test_ledger test_loop test_intake test_pacer test_log)

tsan:
	@$(MAKE) --no-print-directory SAN=tsan all $(TSAN_TESTS:%=build/tsan/tests/%)

sanitized: asan tsan

format:
	find fcgi-app gen tests -name '*.[ch]' -exec clang-format -i {} +

# Everything that is installed is called runnel or runnel-NAME; the scripts find the rest from where
# their links lead. The beds of scripts/proxies are in tests/, so it stays in the source tree.
DEST      := $(DESTDIR)$(PREFIX)
PREFIXED  := gen load
TREE_ONLY := proxies
COMMANDS  := $(filter-out $(TREE_ONLY),$(notdir $(shell find scripts -maxdepth 1 -type f -perm -u+x)))
MANPAGES  := $(filter-out $(TREE_ONLY:%=docs/man/runnel-%.1),$(wildcard docs/man/*.1))

install: all
	install -d "$(DEST)/bin" "$(DEST)/share/runnel/web" "$(DEST)/share/man/man1"
	install -m 755 $(BIN)/runnel "$(DEST)/bin"
	for program in $(PREFIXED); do \
	    install -m 755 $(BIN)/$$program "$(DEST)/bin/runnel-$$program" || exit 1; done
	rm -rf "$(DEST)/lib/runnel"
	find scripts -type d -exec install -d "$(DEST)/lib/runnel/{}" \;
	find scripts -type f $(TREE_ONLY:%=! -name %) ! -name 'beds*' -exec install -m 644 {} "$(DEST)/lib/runnel/{}" \;
	for command in $(COMMANDS); do \
	    chmod 755 "$(DEST)/lib/runnel/scripts/$$command" && \
	    ln -sf "../lib/runnel/scripts/$$command" "$(DEST)/bin/runnel-$$command" || exit 1; done
	install -m 644 nginx.conf "$(DEST)/share/runnel"
	install -m 644 fcgi-app/web/* "$(DEST)/share/runnel/web"
	install -m 644 $(MANPAGES) "$(DEST)/share/man/man1"

uninstall:
	rm -f "$(DEST)/bin/runnel"
	for name in $(PREFIXED) $(COMMANDS); do rm -f "$(DEST)/bin/runnel-$$name"; done
	for page in $(notdir $(MANPAGES)); do rm -f "$(DEST)/share/man/man1/$$page"; done
	rm -rf "$(DEST)/lib/runnel" "$(DEST)/share/runnel"

clean:
	rm -rf build

help:
	@echo 'make lab          install what is missing, build, start, run every step, print PASS or FAIL'
	@echo 'make test         install what the tests need, run them (about ten minutes)'
	@echo 'make              build build/bin/runnel, build/bin/gen and build/bin/load'
	@echo 'make up, down     start and stop nginx and the responder on 127.0.0.1:8170'
	@echo 'make check        everything but the integration suite'
	@echo 'make test-all     what takes longer: suites under sanitizers, clients, the live page, proxies, the abort storm'
	@echo 'make lint, unit, scripts-test, integration, clients, browser, loadtools, storm'
	@echo 'make proxies      what nginx, Apache, HAProxy and others do with a stream: a table (eight minutes)'
	@echo 'make bench        runnel, a plain Node.js and a Starlette server under the same load'
	@echo 'make asan, tsan   the same binaries under sanitizers, in build/asan and build/tsan'
	@echo 'make format, install, uninstall, clean'

.PHONY: all unit-binaries lab test test-all deps deps-test up down check lint unit scripts-test \
        integration clients browser loadtools storm proxies bench asan tsan sanitized format install uninstall clean help
.SECONDARY:
-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
