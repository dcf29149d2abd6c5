/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entering the sandbox, and its half that is about files: Landlock. */
#include "cli/common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

#include "base/cleanup.h"

/* The files that a process may open. */
struct files {
    int rules;       /* descriptor of the Landlock rules; -1: there are none */
    uint64_t rights; /* those that the kernel knows */
    struct cmd_system_calls calls;
};

#if defined BW_SANDBOX && defined SYS_landlock_create_ruleset && defined LANDLOCK_ACCESS_FS_READ_DIR

/* Headers may be older than the kernel. These came with versions 2, 3 and 5 of Landlock. */
enum { REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15 };
enum {
    FIRST_RIGHTS = (1 << 13) - 1,
    READ = LANDLOCK_ACCESS_FS_READ_FILE,
    LIST = LANDLOCK_ACCESS_FS_READ_DIR,
    APPEND = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE,
    /* Running programs and controlling devices is nothing that anybody needs. */
    NEVER = LANDLOCK_ACCESS_FS_EXECUTE | IOCTL_DEV,
};

/* Besides the images. */
static const struct {
    const char *path;
    unsigned rights;
} always[] = {
    {"/sys/dev", READ | LIST}, /* what is below a block device; how many processors there are */
    {"/sys/devices", READ | LIST}, {"/sys/fs/btrfs", READ | LIST},
    {"/proc/self/mounts", READ}, /* whether an image is mounted */
    {"/proc/sys/crypto", READ},  /* by libgcrypt, for checksums of some images */
    {"/etc/gcrypt", READ | LIST},
};

/* Where the C library finds out the address of a server. */
static const char *const resolver[] = {
    "/etc/gai.conf",    "/etc/host.conf", "/etc/hosts",           "/etc/nsswitch.conf",
    "/etc/resolv.conf", "/etc/services",  "/run/systemd/resolve", NULL,
};

/* What cannot be opened now cannot be opened later, either. */
static void allow(const struct files *files, const char *path, uint64_t rights)
{
    struct stat status;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return;
    /* A directory that was given as an image is opened to say so. */
    bool is_directory = fstat(rule.parent_fd, &status) == 0 && S_ISDIR(status.st_mode);
    rule.allowed_access = files->rights & (is_directory && rights == READ ? LIST : rights);
    syscall(SYS_landlock_add_rule, files->rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

/* Links between directories were never allowed by the first version. */
static int make_rules(struct files *files, const char *folder)
{
    const char *const *path = files->calls.servers >= BW_SERVERS_CONNECT ? resolver : NULL;
    struct landlock_ruleset_attr attributes;
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1 || (folder && version < 2))
        return version < 0 ? errno : EOPNOTSUPP;
    files->rights = FIRST_RIGHTS | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
                    (version >= 5 ? IOCTL_DEV : 0);
    memset(&attributes, 0, sizeof attributes);
    attributes.handled_access_fs = files->rights;
    files->rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (files->rules < 0)
        return errno;
    for (size_t i = 0; !files->calls.paths && i < sizeof always / sizeof *always; i++)
        allow(files, always[i].path, always[i].rights);
    for (; path && *path; path++)
        allow(files, *path, READ);
    if (folder)
        allow(files, folder, files->rights & ~(uint64_t)NEVER);
    return 0;
}

static int apply_rules(const struct files *files)
{
    return syscall(SYS_landlock_restrict_self, files->rules, 0) ? errno : 0;
}

#else

enum { READ, APPEND };

static void allow(const struct files *files, const char *path, uint64_t rights)
{
    (void)files, (void)path, (void)rights;
}

static int make_rules(struct files *files, const char *folder)
{
    (void)files, (void)folder;
    return ENOSYS;
}

static int apply_rules(const struct files *files)
{
    (void)files;
    return ENOSYS;
}

#endif

/* A file that a layer will write to is made now, so that there is no need to make any later. */
static struct bw_error *allow_file(void *context, const char *path, bool written)
{
    struct files *files = context;
    int descriptor;
    files->calls.outputs |= written;
    if (written && access(path, F_OK)) {
        BW_TRY(bw_output_file_open(path, true, &descriptor));
        close(descriptor);
    }
    allow(files, path, written ? APPEND : READ);
    return NULL;
}

static const char *outcome(int problem)
{
    return problem ? strerror(problem) : "on";
}

static void tell(const struct cmd_common *common, struct bw_error *note)
{
    cmd_tell((void *)(uintptr_t)common, BW_NOTE, note);
    bw_error_free(note);
}

static struct bw_error *confine(const struct cmd_common *common, const struct bw_fs *fs,
                                struct files *files)
{
    int landlock = make_rules(files, common->folder), seccomp, capabilities;
    if (fs)
        BW_TRY(bw_fs_files(fs, allow_file, files));
    for (size_t i = 0; !landlock && i < common->other_count; i++)
        allow(files, common->others[i], READ);
    tzset(); /* reads a file */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!landlock)
        landlock = apply_rules(files);
    capabilities = cmd_confine_capabilities(&files->calls);
    seccomp = cmd_confine_calls(files->calls);
    tell(common, bw_error_create(BW_ERROR_USAGE, "sandbox: Landlock: %s; seccomp: %s%s%s",
                                 outcome(landlock), outcome(seccomp),
                                 capabilities ? "; dropping capabilities: " : "",
                                 capabilities ? strerror(capabilities) : ""));
    return NULL;
}

/* Its orders come from a process that may be an attacker's by then. */
void cmd_sandbox_enter_maker(const struct cmd_common *common)
{
    struct files files = {.rules = -1,
                          .calls = {.folder = true, .paths = true, .preserves = common->preserves}};
    int landlock = make_rules(&files, common->folder);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!landlock)
        apply_rules(&files);
    cmd_confine_capabilities(&files.calls);
    cmd_confine_calls(files.calls);
    if (files.rules >= 0)
        close(files.rules);
}

/* NULL: it is there. valgrind is inside of the process. */
static const char *lacks_sandbox(const struct cmd_common *common)
{
#ifdef BW_SANDBOX
    const char *preloaded = getenv("LD_PRELOAD");
    return common->sandbox == CMD_SANDBOX_OFF              ? "--sandbox=off"
           : preloaded && strstr(preloaded, "/vgpreload_") ? "valgrind could not work in it"
                                                           : NULL;
#else
    (void)common;
    return "this program was built without one";
#endif
}

bool cmd_sandbox_is_on(const struct cmd_common *common)
{
    return !lacks_sandbox(common);
}

struct bw_error *cmd_sandbox_enter(const struct cmd_common *common, const struct bw_fs *fs)
{
    static bool entered; /* by the process */
    struct files files = {.rules = -1,
                          .calls = {.folder = common->folder,
                                    .preserves = common->preserves,
                                    .serves = common->serves,
                                    .servers = common->servers ? bw_servers_need(common->servers)
                                                               : BW_SERVERS_NOTHING}};
    const char *reason = lacks_sandbox(common);
    if (entered)
        return NULL;
    entered = true;
    if (reason) {
        tell(common, bw_error_create(BW_ERROR_USAGE, "no sandbox: %s", reason));
        return NULL;
    }
    struct bw_error *error = confine(common, fs, &files);
    if (files.rules >= 0)
        close(files.rules);
    return error;
}
