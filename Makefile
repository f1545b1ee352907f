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
LIBS_test   := $(call pkg_libs,cmocka,-lcmocka)

# One list a room: a new file in a room needs no line here.
SRC_base := $(wildcard fcgi-app/base/*.c)
SRC_gen  := gen/tokgen.c $(wildcard gen/tokgen_*.c)
SRC_app  := $(filter-out fcgi-app/main.c,$(wildcard fcgi-app/*.c)) \
            $(wildcard fcgi-app/fastcgi/*.c fcgi-app/endpoints/*.c fcgi-app/engine/*.c fcgi-app/wire/*.c)
SRC_test := $(wildcard tests/unit/test_*.c)

OBJ_lib   := $(patsubst %.c,$(OBJ)/%.o,$(SRC_base) $(SRC_gen) $(SRC_app))
OBJ_gen   := $(patsubst %.c,$(OBJ)/%.o,$(SRC_base) $(SRC_gen) gen/gen.c)
TEST_BINS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(SRC_test))

all: $(BIN)/gen $(BIN)/runnel

$(BIN)/gen: $(OBJ_gen)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_gen)

$(BIN)/runnel: $(OBJ)/fcgi-app/main.o $(OBJ_lib)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runnel)

$(BUILD)/tests/test_%: $(OBJ)/tests/unit/test_%.o $(OBJ_lib)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runnel) $(LIBS_test)

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

unit-binaries: $(TEST_BINS)

clean:
	rm -rf build

.PHONY: all unit-binaries clean
.SECONDARY:
-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
