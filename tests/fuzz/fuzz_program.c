/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for the whole program: a packed image with corrected checksums, and one of many
 * command lines, run as main() would. For any image, the command ends with one of its exit
 * statuses, prints valid text or JSON in UTF-8, and leaves no file open.
 */
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/utf8.h"
#include "fuzz/packed.h"
#include "fuzz/targets.h"

/* The program, under another name. */
#define main program_main
int program_main(int argc, char **argv);
#include "cli/main.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

/* The expected format of stdout. */
enum output_kind { RAW, TEXT, JSON };

/* One command line. % is the first image, the other ones follow with -d; @ are the paths that the
 * input names, and + the folder to extract to; +/ begins the path of a file there. */
static const struct {
    enum output_kind kind;
    const char *words;
} lines[] = {
    {RAW, "walk -j 1 %"},
    {JSON, "walk -j 2 --json -v %"},
    {RAW, "walk -j 1 -o size,path --sort path --type f,d,l,c,b,p,s %"},
    {JSON, "walk -j 1 --json=array --type f,d,l --sort size --subvol default %"},
    {RAW, "walk -j 2 --log ignore --no-snapshots --empty -vv %"},
    {RAW, "ls -lRai %"},
    {RAW, "ls -R --log ignore %"},
    {JSON, "stat --json % @"},
    {TEXT, "stat -L % @"},
    {JSON, "xattr --json % @"},
    {TEXT, "xattr % @"},
    {RAW, "cat -j 2 --on-error zero % @"},
    {RAW, "cat -j 1 --length 100000 --ignore-checksums all % @"},
    {JSON, "extents --json % @"},
    {TEXT, "extents % @"},
    {RAW, "sum -j 2 --algorithm xxh64 %"},
    {RAW, "sum -j 1 --algorithm md5 --ignore-checksums all %"},
    {RAW, "tar -j 1 --on-error zero %"},
    {RAW, "tar -j 2 --on-error skip %"},
    {RAW, "tar -j 1 --format mtree %"},
    {RAW, "extract -j 2 --preserve -C + %"},
    {RAW, "extract -j 1 --on-error zero --ignore-checksums all -C + %"},
    {RAW, "bodyfile -j 1 %"},
    {TEXT, "info %"},
    {JSON, "info --json --log ignore %"},
    {TEXT, "devices %"},
    {JSON, "devices --json %"},
    {TEXT, "usage %"},
    {JSON, "usage --json %"},
    {TEXT, "subvolumes --tree %"},
    {JSON, "subvolumes --json %"},
    {JSON, "subvolumes --json --deleted %"},
    {TEXT, "space --free-if 5 %"},
    {JSON, "space --json %"},
    {JSON, "space --json --shared %"},
    {TEXT, "qgroups %"},
    {JSON, "qgroups --json %"},
    {JSON, "qgroups --status --json %"},
    {TEXT, "log %"},
    {JSON, "log --json %"},
    {TEXT, "super --force %"},
    {JSON, "super --json %"},
    {TEXT, "chunks --by device %"},
    {JSON, "chunks --json %"},
    {TEXT, "map % 0 5242880 22020096+1M 30408704 1G 18446744073709551615"},
    {JSON, "map --json --devid 1 % 0 65536+64K 1M+20M 5242880 30408704 18446744073709551615"},
    {TEXT, "tree-stats --items %"},
    {JSON, "tree-stats --json --tree root --tree fs --tree chunk --tree extent --tree dev %"},
    {TEXT, "dump --log ignore %"},
    {JSON, "dump --json %"},
    {TEXT, "dump --tree fs --tree log --tree csum --csum-items --csum-headers --dfs %"},
    {TEXT, "dump -B 30408704 -B 22020096 -B 5242880 --follow --bfs %"},
    {JSON, "dump --json --tree fs --key 256..260 --hide-names %"},
    {TEXT, "graph %"},
    {TEXT, "check -j 2 %"},
    {JSON, "check -j 1 --data --all --json %"},
    {JSON, "check --quick --strict --json %"},
    {JSON, "du --json --size +0 %"},
    {TEXT, "compression %"},
    {TEXT, "diff % 5 256"},
    {JSON, "diff --json --content always --by-path % 256 5"},
    {TEXT, "owner % 0+1G"},
    {JSON, "owner --json --all-trees --extent % 0+64M 5242880 1G+1G"},
    {JSON, "owner --json --devid 1 % 0+200M"},
    {TEXT, "roots --trees %"},
    {JSON, "roots --json --scan %"},
    {JSON, "deleted --json --scan %"},
    {RAW, "deleted --unproven --on-error zero --extract + %"},
    {JSON, "versions --json --all % /top-file"},
    {RAW, "ls -Ra --generation 6 %"},
    {RAW, "walk -j 1 --generation 7 %"},
    {RAW, "ls -R --tree-root 30408704 --chunk-root 22020096 %"},
    {TEXT, "picture --by owner --order 4 %"},
    {TEXT, "picture --by heatmap --sort logical --format svg %"},
    {TEXT, "report -j 2 %"},
    {RAW, "walk -j 2 --part 2/3 --type f,d -o path,extent_count,disk %"},
    {JSON, "walk -j 1 --json --part 1/2 -o path,size,extent_count,disk %"},
    {RAW, "walk -j 1 --sort -inode %"},
    {RAW, "sum -j 2 --part 1/2 %"},
    {JSON, "check -j 2 --data --part 1/2 --json %"},
    {JSON, "free --sizes --json %"},
    {TEXT, "free --sizes --kind free,unallocated %"},
    {RAW, "send -j 2 -R -C + --on-error zero % 5"},
    {RAW, "send -j 1 --compressed-data --on-error skip % 256"},
    {JSON, "deleted --json --extract + --on-error zero %"},
    {TEXT, "copy --format raw -C + %"},
    {TEXT, "map --used %"},
    {JSON, "map --used --json %"},
    {JSON, "free --json %"},
    {TEXT, "copy --history -C + %"},
    {TEXT, "copy --history -f qcow2 -C + %"},
    {TEXT, "copy --format qcow2 --compress -C + %"},
    {TEXT, "metadump --compress 1 -f +/dump %"},
    {TEXT, "metadump --checksums -f +/dump %"},
    {TEXT, "metadump --sanitize -f +/dump %"},
    {TEXT, "diff --since 6 %"},
    {TEXT, "diff --since @1 --sort -path %"},
    {TEXT, "repair %"},
    {JSON, "repair --data --allow loss,rolled-back,resealed --json %"},
    {TEXT, "repair --verify -f +/fixed %"},
    {TEXT, "repair --format raw -C + %"},
    {TEXT, "rescue %"},
    {JSON, "rescue --scan --json %"},
    {TEXT, "check --save +/baseline %"},
};

enum {
    LINES = sizeof lines / sizeof *lines,
    WORDS = 48,
    OUTPUT_AT_MOST = 8 << 20, /* writing more fails, as on a full disk */
    COPY_AT_MOST = 256 << 20, /* the same for copies, which mostly consist of holes */
};

/* The command line in words. */
struct arguments {
    char text[512];
    char file[96];
    char images[PACKED_DEVICES][32];
    char *words[WORDS + 1];
    int count;
};

static char folder[64];
static int sink = -1;

static void add_word(struct arguments *arguments, char *word)
{
    if (arguments->count < WORDS)
        arguments->words[arguments->count++] = word;
}

static void add_images(struct arguments *arguments, const struct packed_image *image)
{
    static char device[] = "--device";
    for (unsigned i = 0; i < image->device_count; i++) {
        snprintf(arguments->images[i], sizeof arguments->images[i], "/proc/self/fd/%d",
                 image->devices[i].file);
        if (i)
            add_word(arguments, device);
        add_word(arguments, arguments->images[i]);
    }
}

/* A command makes the file, but not the folder. */
static void add_file(struct arguments *arguments, const char *name)
{
    mkdir(folder, 0700);
    snprintf(arguments->file, sizeof arguments->file, "%s%s", folder, name);
    add_word(arguments, arguments->file);
}

static void make_arguments(struct arguments *arguments, struct packed_image *image)
{
    /* A process that has entered the sandbox cannot leave it for the next input. */
    static char name[] = "btrfs-walk", sandbox[] = "--sandbox=off";
    arguments->count = 0;
    add_word(arguments, name);
    snprintf(arguments->text, sizeof arguments->text, "%s", lines[image->command % LINES].words);
    char *rest = NULL, *word = strtok_r(arguments->text, " ", &rest);
    for (; word; word = strtok_r(NULL, " ", &rest)) {
        if (arguments->count == 2)
            add_word(arguments, sandbox);
        if (*word == '%')
            add_images(arguments, image);
        else if (strcmp(word, "+") == 0)
            add_word(arguments, folder);
        else if (*word == '+')
            add_file(arguments, word + 1);
        else if (*word != '@')
            add_word(arguments, word);
        for (unsigned i = 0; *word == '@' && i < image->operand_count; i++)
            add_word(arguments, image->operands[i]);
    }
    arguments->words[arguments->count] = NULL;
}

/* Checking. */

static void check_text(const char *command, const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((text[i] < ' ' && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            fuzz_fail("a control byte %d in what %s prints, at %zu", text[i], command, i);
}

/* The output may have been cut off where it became too long. */
static void check_output(const char *command, enum output_kind kind)
{
    off_t length = lseek(sink, 0, SEEK_END);
    bool cut = length >= OUTPUT_AT_MOST;
    if (length > 0 && kind != RAW && !cut) {
        uint8_t *text = mmap(NULL, (size_t)length, PROT_READ, MAP_PRIVATE, sink, 0);
        if (text == MAP_FAILED)
            fuzz_fail("no memory for the output");
        check_text(command, text, (size_t)length);
        if (kind == JSON && !bw_utf8_is_valid(text, (size_t)length))
            fuzz_fail("%s prints JSON that is no UTF-8", command);
        munmap(text, (size_t)length);
    }
    if (ftruncate(sink, 0) || lseek(sink, 0, SEEK_SET))
        fuzz_fail("the output cannot be emptied");
}

static int next_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(descriptor);
    return descriptor;
}

/* Exit statuses of check are bits, as those of fsck(8). */
static void check_status(const char *command, int status)
{
    const int most = strcmp(command, "check") == 0 ? 4 | 8 | 16 : STATUS_UNSUPPORTED;
    if (status < 0 || status > most)
        fuzz_fail("exit status %d of %s", status, command);
}

/* Running. */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void limit_output(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void prepare(void)
{
    if (sink >= 0)
        return;
    snprintf(folder, sizeof folder, "/dev/shm/btrfs-walk-fuzz-%d", (int)getpid());
    sink = memfd_create("stdout", MFD_CLOEXEC);
    signal(SIGXFSZ, SIG_IGN);
    setenv("TZ", "UTC", 1);
}

/* Runs with stdout in the sink. */
static int run_captured(struct arguments *arguments)
{
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(sink, STDOUT_FILENO);
    limit_output(strcmp(arguments->words[1], "copy") == 0 ? COPY_AT_MOST : OUTPUT_AT_MOST);
    optind = 0; /* getopt_long() starts again */
    int status = program_main(arguments->count, arguments->words);
    fflush(stdout);
    clearerr(stdout);
    limit_output(RLIM_INFINITY);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    return status;
}

static bool reads_contents(const char *words)
{
    static const char *const names[] = {"cat", "sum", "tar", "extract", "deleted", "versions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(words, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

void fuzz_program(const uint8_t *data, size_t size)
{
    struct packed_image *image = packed_image();
    struct arguments arguments;
    prepare();
    if (size > PACKED_ROOM || !packed_unpack(image, data, size))
        return;
    packed_mend(image, reads_contents(lines[image->command % LINES].words));
    make_arguments(&arguments, image);
    int descriptor = next_descriptor();
    int status = run_captured(&arguments);
    check_output(lines[image->command % LINES].words, lines[image->command % LINES].kind);
    check_status(arguments.words[1], status);
    if (strstr(lines[image->command % LINES].words, "--sanitize"))
        fuzz_check_dump(image, arguments.file);
    if (strchr(lines[image->command % LINES].words, '+'))
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (next_descriptor() != descriptor)
        fuzz_fail("a file is left open");
}
