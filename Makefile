# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the library, the program and the tests. `make help` lists the targets.

VERSION  := 0.4.0
# Installation directories. DESTDIR is a prefix for staging, which does not become part of any path
# in the files.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
BASHCOMPLETIONDIR ?= $(DATADIR)/bash-completion/completions
ZSHCOMPLETIONDIR  ?= $(DATADIR)/zsh/site-functions
FISHCOMPLETIONDIR ?= $(DATADIR)/fish/vendor_completions.d
DESTDIR    ?=
BUILD    ?= build
ifeq ($(origin CC),default)
  CC := gcc
endif
AR       ?= ar
PKG_CONFIG ?= pkg-config

# STATIC=1 links a program that needs no other files, for rescue systems. It supports neither
# plug-ins nor servers: libnbd needs GnuTLS, parts of which no distribution has as static libraries.
# The linker's warnings about dlopen and getpwnam concern functions of libraries that are never
# called.
STATIC   ?= 0
exists    = $(if $(shell $(PKG_CONFIG) --exists '$(1)' 2> /dev/null && echo 1),1,0)

# Without libnbd, images are read only from files. libnbd is not linked; it is loaded when needed.
NBD      ?= $(if $(filter 1,$(STATIC)),0,$(call exists,libnbd >= 1.8))

# libisal is not available everywhere, and rarely as a static library. Without it, checksums and
# parity take up to twice as long.
ISAL     ?= $(if $(filter 1,$(STATIC)),0,$(call exists,libisal))

# Without json-c, headers of LUKS2 are not read.
LUKS2    ?= $(call exists,json-c)

# Without liblz4 and liblzma, images compressed with lz4 and xz are not read.
LZ4      ?= $(call exists,liblz4)
XZ       ?= $(call exists,liblzma)

PACKAGES := uuid blkid libxxhash libgcrypt libzstd zlib lzo2 \
    $(if $(filter 1,$(ISAL)),libisal) $(if $(filter 1,$(LUKS2)),json-c) \
    $(if $(filter 1,$(LZ4)),liblz4) $(if $(filter 1,$(XZ)),liblzma)
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wconversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wpointer-arith
CFLAGS   ?= -O2 -g
SANITIZE ?=

# Probes for external tracers (bpftrace, perf, gdb) need sys/sdt.h at build time, and nothing at run
# time.
USDT     ?= $(if $(shell echo '\#include <sys/sdt.h>' | $(CC) -E - 2> /dev/null),1,0)

# The program's sandbox. Sanitizers and coverage need additional system calls, so it is disabled
# with them. Without libseccomp, it restricts only files, not system calls.
SANDBOX  ?= $(if $(SANITIZE)$(filter --coverage -fprofile%,$(CFLAGS) $(LDFLAGS)),0,1)
SECCOMP  ?= $(if $(filter 1,$(SANDBOX)),$(call exists,libseccomp >= 2.5),0)

# The mount command needs libfuse 3; without it, the command reports that.
FUSE     ?= $(call exists,fuse3 >= 3.8)

# Pictures are written as PNG with libpng, without it only as SVG. libpng is not available
# everywhere as a static library.
PNG      ?= $(if $(filter 1,$(STATIC)),$(if $(wildcard \
    $(shell $(PKG_CONFIG) --variable=libdir libpng 2> /dev/null)/libpng.a),1,0),\
    $(call exists,libpng))

# Features become macros such as BW_USDT. The shell runs once.
FEATURES := USDT SANDBOX SECCOMP FUSE NBD ISAL PNG LUKS2 LZ4 XZ STATIC
$(foreach feature,$(FEATURES),$(eval $(feature) := $($(feature))))

# No file contains the folder of the build, so builds in different folders are the same.
override CFLAGS   += -std=gnu11 $(WARNINGS) -fPIC -pthread \
    -ffile-prefix-map=$(CURDIR)=. $(if $(SANITIZE),\
    -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)
override CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 \
    -DBW_VERSION='"$(VERSION)"' \
    $(foreach feature,$(FEATURES),$(if $(filter 1,$($(feature))),-DBW_$(feature))) \
    -Iinclude -I$(BUILD)/include -Isrc
override LDFLAGS  += -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE))

ifeq ($(filter clean help uninstall,$(MAKECMDGOALS)),)
  MISSING := $(strip $(foreach tool,$(firstword $(CC)) $(firstword $(PKG_CONFIG)) python3,\
      $(shell command -v $(tool) > /dev/null || echo $(tool))))
  ifeq ($(MISSING),)
    MISSING := $(strip $(foreach package,$(PACKAGES),\
        $(shell $(PKG_CONFIG) --exists $(package) || echo $(package))))
  endif
  ifneq ($(MISSING),)
    $(error Missing: $(MISSING). Install what is needed with: scripts/install-deps)
  endif
  override CFLAGS += $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
  LIBRARIES := $(shell $(PKG_CONFIG) --libs $(if $(filter 1,$(STATIC)),--static) $(PACKAGES)) -ldl
  ifeq ($(NBD),1)
    override CFLAGS += $(shell $(PKG_CONFIG) --cflags libnbd)
  endif
  ifeq ($(SECCOMP),1)
    PROGRAM_LIBRARIES := $(shell $(PKG_CONFIG) --libs libseccomp)
  endif
  ifeq ($(FUSE),1)
    override CFLAGS += $(shell $(PKG_CONFIG) --cflags fuse3)
    PROGRAM_LIBRARIES += $(shell $(PKG_CONFIG) --libs fuse3)
  endif
  ifeq ($(PNG),1)
    override CFLAGS += $(shell $(PKG_CONFIG) --cflags libpng)
    PROGRAM_LIBRARIES += $(shell $(PKG_CONFIG) --libs $(if $(filter 1,$(STATIC)),--static) libpng)
  endif
endif

NEED_FUSE       := $(if $(filter 0,$(FUSE)),$(wildcard src/mount/*.c src/cli/mount/mount?*.c \
    tests/unit/test_mount*.c tests/unit/mount/*.c))
EXPORT_SOURCES  := $(filter-out $(NEED_FUSE),$(wildcard src/export/*.c src/draw/*.c \
    src/mount/*.c))
LIBRARY_SOURCES := $(filter-out src/cli/% src/export/% src/draw/% src/mount/%,\
    $(shell find src -name '*.c' | sort))
PROGRAM_SOURCES := $(filter-out $(NEED_FUSE),$(shell find src/cli -name '*.c' | sort))
SUPPORT_SOURCES := $(wildcard tests/support/*.c)
COMMAND_TESTS   ?= $(wildcard tests/command/*.sh)
WITHOUT         := $(NEED_FUSE) $(if $(filter 0,$(NBD)),%/test_storage_nbd.c) \
    $(if $(filter 1,$(STATIC)),%/test_plugin.c)
TEST_SOURCES    := $(filter-out $(WITHOUT),$(shell find tests/unit -name 'test_*.c' | sort))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIBRARY_OBJECTS := $(call objects,$(LIBRARY_SOURCES))
PROGRAM_OBJECTS := $(call objects,$(PROGRAM_SOURCES))
EXPORT_OBJECTS  := $(call objects,$(EXPORT_SOURCES))
SUPPORT_OBJECTS := $(call objects,$(SUPPORT_SOURCES))
SOAK            := $(BUILD)/tests/soak/soak
UNIT_TESTS      := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(TEST_SOURCES)))
TESTS           := $(UNIT_TESTS) $(BUILD)/tests/fuzz-smoke $(SOAK)
FUZZ_OBJECTS    := $(call objects,$(filter-out tests/fuzz/entry.c,$(wildcard tests/fuzz/*.c)))
SOAK_OBJECTS    := $(call objects,$(wildcard tests/soak/*.c))

PROGRAM := $(BUILD)/btrfs-walk
# The records as structures: a public header that is made from their table.
RECORDS := $(BUILD)/include/btrfs-walk/records.h
EXPORT  := $(BUILD)/libexport.a
ARCHIVE := $(BUILD)/libbtrfs-walk.a
SONAME  := libbtrfs-walk.so.2
SHARED  := $(BUILD)/$(SONAME)
# A page for each command in the table, and the general pages.
COMMANDS := $(subst _,-,$(patsubst &cmd_%,%,$(sort $(shell grep -o '&cmd_[a-z_]*' src/cli/main.c))))
MANUAL  := $(addprefix $(BUILD)/man/btrfs-walk,.1 -xlators.7 -probes.7 $(COMMANDS:%=-%.1))

# Directory for layers in shared objects, which link to the functions in the public headers.
XLATOR_DIRECTORY := $(LIBDIR)/btrfs-walk/xlator
EXPORTS := $(foreach symbols,bw_error_* bw_json_* bw_request_* bw_wind* bw_xlator_*,\
    -Wl,--export-dynamic-symbol='$(symbols)')

# Print short lines; V=1 prints the commands instead, V=0 prints nothing.
quiet = $(if $(filter 0,$(V)),@,$(if $(V),,@printf '  %-4s %s\n' $(1) $@;))

all: $(PROGRAM) $(ARCHIVE) $(SHARED) $(MANUAL) ## build the program, the library and the manual

$(BUILD)/%.o: %.c $(BUILD)/features | $(RECORDS)
	@mkdir -p $(@D)
	$(call quiet,CC)$(CC) $(CPPFLAGS) $(if $(filter tests/%,$<),-Itests) $(CFLAGS) -MMD -MP -c -o $@ $<

# Objects that include it depend on it once it exists.
$(RECORDS): src/record/records.def scripts/make-records scripts/docs/words.py
	$(call quiet,GEN)scripts/make-records $@ $(CC)

# All objects depend on the features and the version.
FEATURE_LIST := VERSION=$(VERSION) $(foreach feature,$(FEATURES),$(feature)=$($(feature)))
$(BUILD)/features: FORCE
	@mkdir -p $(@D)
	@echo '$(FEATURE_LIST)' | cmp -s - $@ || echo '$(FEATURE_LIST)' > $@

# The directory is compiled in, so a different PREFIX rebuilds this object.
$(BUILD)/xlator-directory: FORCE
	@mkdir -p $(@D)
	@echo '$(XLATOR_DIRECTORY)' | cmp -s - $@ || echo '$(XLATOR_DIRECTORY)' > $@

$(BUILD)/src/graph/layer_types.o: $(BUILD)/xlator-directory
$(BUILD)/src/graph/layer_types.o: override CPPFLAGS += -DBW_XLATOR_DIRECTORY='"$(XLATOR_DIRECTORY)"'

$(ARCHIVE): $(LIBRARY_OBJECTS)
	@rm -f $@
	$(call quiet,AR)$(AR) rcs $@ $^

# The library exports what the public headers declare.
HEADERS := $(wildcard include/btrfs-walk/*.h) $(RECORDS)
$(BUILD)/symbols.map: Makefile scripts/make-symbols $(HEADERS)
	@mkdir -p $(@D)
	$(call quiet,MAP)scripts/make-symbols BTRFS_WALK_2 $(HEADERS) > $@

$(SHARED): $(LIBRARY_OBJECTS) $(BUILD)/symbols.map
	$(call quiet,LD)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=$(BUILD)/symbols.map -o $@ $(LIBRARY_OBJECTS) $(LIBRARIES)

# Export functions, which only commands and tests use.
$(EXPORT): $(EXPORT_OBJECTS)
	@rm -f $@
	$(call quiet,AR)$(AR) rcs $@ $^

# The C library is first: the dynamic linker looks up symbols in this order, and most are its own.
$(PROGRAM): $(PROGRAM_OBJECTS) $(EXPORT) $(ARCHIVE)
	$(call quiet,LD)$(CC) $(LDFLAGS) $(if $(filter 1,$(STATIC)),-static,$(EXPORTS)) -o $@ $^ \
	    -lc $(LIBRARIES) $(PROGRAM_LIBRARIES)

# With sanitizers, compiling takes most of its time to optimize their checks. Only the folders that
# handle every request, block and item run often enough to gain from that.
HOT := base btree ondisk xlators
COLD := $(filter-out $(HOT:%=src/%/),$(wildcard src/*/)) tests/support/
ifneq ($(SANITIZE),)
  $(foreach folder,$(COLD),$(eval $(BUILD)/$(folder)%.o: override CFLAGS += -O0))
endif

# Generated from the tables of the program; one run generates all pages, and those of commands that
# no longer exist go. A cross build cannot run the program: it copies the pages in man/, which are
# in the archive of `make dist`.
MANUAL_PAGES ?= man
ifneq ($(wildcard $(MANUAL_PAGES)/btrfs-walk.1),)
$(MANUAL): $(BUILD)/man/%: $(MANUAL_PAGES)/%
	@mkdir -p $(@D)
	$(call quiet,MAN)cp $< $@
else
$(MANUAL) &: $(PROGRAM) scripts/make-docs packaging/debian/changelog $(wildcard scripts/docs/*.py)
	@rm -rf $(BUILD)/man
	$(call quiet,MAN)scripts/make-docs --man $(PROGRAM) $(BUILD)/man
endif

# Most unit tests are functions only: their main() is made. Few of them need their parameter.
# Without optimization, because compiling the tests takes longer than running them.
$(BUILD)/tests/unit/%.o: override CFLAGS += -O0 -Wno-unused-parameter
$(BUILD)/tests/unit/%.o: tests/unit/%.c scripts/make-test-main $(BUILD)/features | $(RECORDS)
	@mkdir -p $(@D)
	@scripts/make-test-main $< > $(@:.o=.c)
	$(call quiet,CC)$(CC) $(CPPFLAGS) -I. -Itests $(CFLAGS) -MMD -MP -c -o $@ $(@:.o=.c)

# The code to test, including internal functions, linked once for all tests.
TESTED := $(BUILD)/tests/libtested.so
$(TESTED): $(SUPPORT_OBJECTS) $(EXPORT_OBJECTS) $(LIBRARY_OBJECTS)
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(LDFLAGS) -shared -o $@ $^ $(LIBRARIES) $(PROGRAM_LIBRARIES) -lcmocka

# Linking many tests with gold takes a fraction of the time. Other linkers need objects before the
# libraries that these use.
GOLD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(foreach source,$(TEST_SOURCES),$(eval $(BUILD)/tests/$(basename $(notdir $(source))): \
    $(BUILD)/$(source:.c=.o)))
$(UNIT_TESTS): $(TESTED)
	$(call quiet,LD)$(CC) $(LDFLAGS) $(GOLD) -Wl,-rpath,'$$ORIGIN' -o $@ $(filter %.o,$^) $(TESTED) \
	    $(LIBRARIES) -lcmocka

# A plug-in for a test, which finds it in the folder with the test's name.
$(BUILD)/tests/plugin/toys/rot13.so: tests/plugin/rot13.c
	@mkdir -p $(@D)
	$(call quiet,LD)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -shared -MMD -MP -MF $(@:.so=.d) -o $@ $<

$(BUILD)/tests/test_plugin: | $(BUILD)/tests/plugin/toys/rot13.so

$(SOAK): $(SOAK_OBJECTS) $(TESTED)
	$(call quiet,LD)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^ $(LIBRARIES) -lcmocka

$(BUILD)/tests/worst-images: $(BUILD)/tests/worst/worst.o $(TESTED)
	$(call quiet,LD)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(LIBRARIES) -lcmocka

# One fuzz target is the program, including its main().
$(BUILD)/tests/fuzz-smoke: $(FUZZ_OBJECTS) $(SUPPORT_OBJECTS) \
    $(filter-out %/main.o,$(PROGRAM_OBJECTS)) $(EXPORT) $(ARCHIVE)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBRARIES) $(PROGRAM_LIBRARIES) -lcmocka

-include $(shell find $(addprefix $(BUILD)/,src tests bench) -name '*.d' 2> /dev/null)

unit: $(TESTS) ## build and run the unit tests
	@scripts/run-tests $(TESTS)

ALL_TESTS := $(TESTS) $(addprefix $(BUILD)/tests/,worst-images failing/functions)
build-tests: all $(ALL_TESTS) ## build the tests

check: build-tests ## run all tests (TIMES=1 names the slowest)
	@BUILD=$(BUILD) scripts/run-tests $(TIMES:%=--times) $(TESTS) $(COMMAND_TESTS)

# Tests that otherwise try only a part of their cases.
SWEEPS := $(BUILD)/tests/test_faults $(BUILD)/tests/test_faults_above \
    $(patsubst %,tests/command/%.sh,bounds faults hostile log ls messages python rows)
check-long: check ## the same, and minutes of random and hostile images
	WORST=1 BUILD=$(BUILD) scripts/run-tests $(SWEEPS)
	$(SOAK) --rounds 5000 --seed $(or $(SEED),1)

# Programs with calls that fail. Sanitizers have allocation functions of their own, so nothing can
# be preloaded; the linker replaces the calls instead.
FAILING := $(BUILD)/tests/failing
CALLS   := $(if $(SANITIZE),$(FAILING)/calls.o)
REPLACE  = $(if $(CALLS),$$(nm $(CALLS) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p'))
$(FAILING)/calls.o: tests/preload/fail_calls.c
	@mkdir -p $(@D)
	$(call quiet,CC)$(CC) -O1 -g -pthread -DWRAPPED -c -o $@ $<

$(FAILING)/btrfs-walk: $(PROGRAM_OBJECTS) $(EXPORT)
$(FAILING)/functions: $(FAILING)/functions.o
$(FAILING)/btrfs-walk $(FAILING)/functions: $(ARCHIVE) $(CALLS)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $(filter-out $(ARCHIVE),$^) $(ARCHIVE) $(REPLACE) \
	    $(LIBRARIES) $(PROGRAM_LIBRARIES)

TORTURED := $(FAILING)/functions $(if $(SANITIZE),$(FAILING)/btrfs-walk)
torture: all $(TORTURED) ## let every call of every command fail (takes hours)
	WORST=1 BUILD=$(BUILD) bash tests/command/failures.sh

# kernel.py, history.py and guest.py are modules of the others; repair_compare.py measures.
KERNEL_TESTS := $(filter-out %/kernel.py %/history.py %/guest.py %/repair_compare.py,\
    $(wildcard tests/kernel/*.py))
check-kernel: all ## compare with the kernel on random file systems (root; COUNT=, SEED=)
	@BUILD=$(BUILD) COUNT=$(or $(COUNT),2) $(SEED:%=SEED=%) scripts/run-tests $(KERNEL_TESTS)

# Builds on all processors, unless -j limits them.
demo: ## build the program and list a bundled image with it
	@echo 'Building $(PROGRAM), which takes a minute or so ...'
	@+$(MAKE) --no-print-directory V=$(or $(V),0) $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) \
	    $(PROGRAM)
	@scripts/demo $(BUILD)

# The compiler's and linker's arguments, for scripts that use other compilers.
libraries:
	$(info $(LIBRARIES) $(PROGRAM_LIBRARIES))@:

flags:
	$(info $(subst ',,$(CPPFLAGS) $(CFLAGS)) -DBW_XLATOR_DIRECTORY="/")@:

BENCHES := $(BUILD)/bench/floor $(BUILD)/bench/block-list $(BUILD)/bench/chunk-image \
           $(BUILD)/bench/large-image
BENCH_LAYERS := $(BUILD)/bench/large-layer.so $(BUILD)/bench/queue-layer.so

# So that they compile after every change. Nothing runs them with sanitizers.
build-tests: $(if $(SANITIZE),$(BENCHES:=.o),$(BENCHES))

$(filter-out %/chunk-image,$(BENCHES)): $(BUILD)/bench/%: $(BUILD)/bench/%.o $(ARCHIVE)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBRARIES)

$(BUILD)/bench/large-image: $(BUILD)/bench/large.o

$(BUILD)/bench/large-layer.so: $(BUILD)/bench/large.o
$(BENCH_LAYERS): $(BUILD)/bench/%.so: $(BUILD)/bench/%.o
	$(call quiet,LD)$(CC) $(LDFLAGS) -shared -o $@ $^ $(LIBRARIES)

$(BUILD)/bench/chunk-image.o: override CPPFLAGS += -Itests
$(BUILD)/bench/chunk-image: $(BUILD)/bench/chunk-image.o $(SUPPORT_OBJECTS) $(EXPORT) $(ARCHIVE)
	$(call quiet,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LIBRARIES) -lcmocka

docs: $(PROGRAM) ## update the pages in docs and the headers of records
	scripts/make-docs $(PROGRAM) .

abi: $(SHARED) ## update the description of the interface, after additions (needs libabigail)
	scripts/abi --update $(SHARED)

# The binding for Python, linked to the static library. PYTHON is the first one here that has what
# is needed; the module works with all others, too.
FOUND_PYTHON = $(firstword $(foreach python,python3 /usr/bin/python3,\
    $(if $(shell $(python) -c 'import cffi, setuptools, wheel' 2> /dev/null && echo 1),$(python))))
PYTHON ?= $(or $(FOUND_PYTHON),$(error Missing: cffi, setuptools and wheel of Python. Install \
    what is needed with: scripts/install-deps))
PYTHON_CFLAGS    ?= -O1 -g0
PYTHON_LIBRARIES ?= -Wl,--exclude-libs,ALL,--strip-debug $(abspath $(ARCHIVE)) $(LIBRARIES)
PYTHON_BUILD     := $(abspath $(BUILD))/python
# Python itself has no sanitizer, so it has to load the runtime of the sanitizer before the module.
PYTHON_SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
    $(if $(findstring clang,$(CC)),-shared-libasan))
SANITIZER_FILE   := $(if $(findstring clang,$(CC)),libclang_rt.asan-$(shell uname -m).so,libasan.so)
PYTHON_PRELOAD    = $(if $(SANITIZE),$(shell $(CC) -print-file-name=$(SANITIZER_FILE)))
PYTHON_CPPFLAGS = -I$(abspath include) -I$(abspath $(BUILD)/include) -D_GNU_SOURCE \
    -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
# In the folder python/, with the flags that setup.py passes on.
PYTHON_SETUP = mkdir -p $(PYTHON_BUILD) && cd python && CC='$(CC)' \
    CFLAGS='$(PYTHON_CFLAGS) $(PYTHON_SANITIZER)' LD_LIBRARY_PATH=$(abspath $(BUILD)) \
    BTRFS_WALK_PRELOAD='$(PYTHON_PRELOAD)' \
    BTRFS_WALK_CFLAGS='$(PYTHON_CPPFLAGS)' \
    BTRFS_WALK_LIBS='$(PYTHON_SANITIZER) $(PYTHON_LIBRARIES)' $(PYTHON) -W ignore setup.py -q \
    egg_info --egg-base $(PYTHON_BUILD) \
    build --build-base $(PYTHON_BUILD)/temporary --build-lib $(PYTHON_BUILD)/lib
PYTHON_SOURCES := $(wildcard python/*.py python/*.c python/pyproject.toml python/btrfswalk/*)
PYTHON_BINDING := $(BUILD)/python/lib/btrfswalk/structures.pyi

$(PYTHON_BINDING): $(ARCHIVE) $(SHARED) $(HEADERS) $(PYTHON_SOURCES)
	$(call quiet,PY)$(PYTHON_SETUP) --force

python: $(PYTHON_BINDING) ## build the package for Python (needs cffi, setuptools and wheel)

python-preload: # for scripts: what LD_PRELOAD has to be
	$(info $(PYTHON_PRELOAD))@:

wheel: $(PYTHON_BINDING) ## make a wheel of it
	@$(PYTHON_SETUP) bdist_wheel --dist-dir $(abspath $(BUILD)) --bdist-dir $(PYTHON_BUILD)/wheel
	@ls $(BUILD)/btrfswalk-$(VERSION)-*.whl

install-python: $(PYTHON_BINDING) ## install it under DESTDIR (PYTHON_LAYOUT= for setup.py install)
	@$(PYTHON_SETUP) install --skip-build --root $(or $(DESTDIR),/) $(PYTHON_LAYOUT)

# With BEFORE=, compares only two programs, which takes less than three minutes.
bench: $(PROGRAM) $(BENCHES) ## run the benchmarks, or compare with BEFORE=PROGRAM (root)
	BUILD=$(BUILD) $(if $(BEFORE),bench/compare.py $(BEFORE),scripts/bench)

soak: $(SOAK) ## read random images through failing graphs, for minutes (ROUNDS=, SEED=)
	$(SOAK) --rounds $(or $(ROUNDS),20000) --seed $(or $(SEED),$$(date +%s))

FUZZ_SECONDS ?= 60
fuzz: ## run the fuzzers for a minute each (needs clang; FUZZ_SECONDS=, FUZZER=afl)
	BUILD=$(BUILD) scripts/fuzz $(FUZZ_SECONDS)

coverage: ## run all tests and count the executed lines of src (needs gcov)
	BUILD=$(BUILD) scripts/coverage

mutate: ## change single lines of src, which the tests must detect (N=, SEED=)
	BUILD=$(BUILD) SEED=$(or $(SEED),1) scripts/mutate $(or $(N),200)

analyze: ## run clang-tidy, cppcheck and gcc -fanalyzer over src
	scripts/analyze

check-valgrind: all $(TESTS) ## run all commands and the unit tests under valgrind
	BUILD=$(BUILD) scripts/check-valgrind

# Files to install, as SOURCE:DIRECTORY; the built ones exist after `all`.
INSTALLED := $(PROGRAM):$(BINDIR) $(ARCHIVE):$(LIBDIR) $(SHARED):$(LIBDIR) \
    $(BUILD)/btrfs-walk.pc:$(LIBDIR)/pkgconfig \
    $(HEADERS:%=%:$(INCLUDEDIR)/btrfs-walk) \
    $(foreach page,$(MANUAL),$(page):$(MANDIR)/man$(patsubst .%,%,$(suffix $(page)))) \
    completions/btrfs-walk.bash:$(BASHCOMPLETIONDIR) \
    completions/_btrfs-walk:$(ZSHCOMPLETIONDIR) completions/btrfs-walk.fish:$(FISHCOMPLETIONDIR) \
    $(patsubst %,%:$(DATADIR)/btrfs-walk/bpftrace,$(wildcard scripts/bpftrace/*))
mode = $(if $(filter $(PROGRAM):% $(SHARED):%,$(1))$(strip \
    $(foreach end,.bt: /run:,$(findstring $(end),$(1)))),755,644)
installed_path = $(DESTDIR)$(lastword $(subst :, ,$(1)))/$(notdir $(firstword $(subst :, ,$(1))))

# Makes a path relative to the prefix, so that pkg-config can relocate it.
in_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
$(BUILD)/btrfs-walk.pc: src/btrfs-walk.pc.in Makefile FORCE
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(call in_prefix,$(LIBDIR))|' \
	    -e 's|@INCLUDEDIR@|$(call in_prefix,$(INCLUDEDIR))|' -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@PACKAGES@|$(PACKAGES)|' $< > $@

# The installed program is linked to the static library.
install: all $(BUILD)/btrfs-walk.pc ## install under DESTDIR and PREFIX (BINDIR=, LIBDIR=, ...)
	@$(foreach file,$(INSTALLED),install -D -m $(call mode,$(file)) \
	    $(firstword $(subst :, ,$(file))) $(call installed_path,$(file)) &&) :
	@ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libbtrfs-walk.so
	@install -d $(DESTDIR)$(XLATOR_DIRECTORY)
	@echo 'Installed. Programs that use the shared library may need ldconfig.'

uninstall: ## remove the installed files
	rm -f $(foreach file,$(INSTALLED),$(call installed_path,$(file))) \
	    $(DESTDIR)$(LIBDIR)/libbtrfs-walk.so
	rmdir $(DESTDIR)$(XLATOR_DIRECTORY) $(DESTDIR)$(dir $(XLATOR_DIRECTORY)) \
	    $(DESTDIR)$(INCLUDEDIR)/btrfs-walk $(DESTDIR)$(DATADIR)/btrfs-walk/bpftrace \
	    $(DESTDIR)$(DATADIR)/btrfs-walk 2> /dev/null || true

# The archive is reproducible. It contains the manual, for builds that cannot run the program; with
# MANUAL= it does not.
DIST := $(BUILD)/btrfs-walk-$(VERSION).tar.gz
dist: $(MANUAL) ## pack the sources of the last commit, with the manual
	@rm -rf $(BUILD)/dist
	@mkdir -p $(BUILD)/dist
	@git archive --format=tar --prefix=btrfs-walk-$(VERSION)/ HEAD | tar -x -C $(BUILD)/dist
	@$(if $(MANUAL),install -D -m 644 -t $(BUILD)/dist/btrfs-walk-$(VERSION)/man $(MANUAL))
	@tar -c -C $(BUILD)/dist --sort=name --mtime=@$$(git log -1 --format=%ct) --owner=0 --group=0 \
	    --numeric-owner --mode=u+rw,go=rX --format=gnu btrfs-walk-$(VERSION) | gzip -9n > $(DIST)
	@rm -rf $(BUILD)/dist
	@echo $(DIST)

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: FORCE all flags libraries unit build-tests check check-long check-kernel demo docs abi \
    python python-preload wheel install-python \
    bench soak torture fuzz coverage mutate analyze check-valgrind install \
    uninstall dist clean help
FORCE:
.SECONDARY:
.DELETE_ON_ERROR:
