/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores the attributes of new files: owner, permissions, flags, extended attributes and times,
 * through a descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/compare.h"
#include "export/target.h"

/*
 * Flags of files. File systems support different flags, and reject a set with an unsupported one,
 * so each flag is set separately. Few files have any, and those have only one or two.
 */

/* When a flag is set. */
static const struct flag {
    enum bw_flag_time when;
    int flag; /* for FS_IOC_SETFLAGS */
} flags[] = {
    {BW_FLAGS_EMPTY, FS_NOCOW_FL},       {BW_FLAGS_EMPTY, FS_NOCOMP_FL},
    {BW_FLAGS_EMPTY, FS_COMPR_FL},       {BW_FLAGS_ANY, FS_SYNC_FL},
    {BW_FLAGS_ANY, FS_NODUMP_FL},        {BW_FLAGS_ANY, FS_NOATIME_FL},
    {BW_FLAGS_ANY, FS_DIRSYNC_FL},       {BW_FLAGS_PROTECT, FS_APPEND_FL},
    {BW_FLAGS_PROTECT, FS_IMMUTABLE_FL},
};

/* The flags of this kind that an inode has, for FS_IOC_SETFLAGS. */
static int wanted_flags(const struct bw_inode *inode, enum bw_flag_time when)
{
    const int all = (int)bw_inode_file_flags(inode);
    int wanted = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].when == when)
            wanted |= all & flags[i].flag;
    return wanted;
}

static bool has_flags(const struct bw_inode *inode, enum bw_flag_time when)
{
    return wanted_flags(inode, when);
}

bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when)
{
    /* ioctl_iflags(2): declared with a pointer to long, but implemented with int */
    int wanted = wanted_flags(inode, when), has[2] = {0}, problem = 0;
    if (!wanted)
        return true;
    if (ioctl(descriptor, FS_IOC_GETFLAGS, has))
        return false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int more[2] = {has[0] | (flags[i].flag & wanted)};
        if (more[0] == has[0])
            continue;
        if (ioctl(descriptor, FS_IOC_SETFLAGS, more))
            problem = errno;
        else
            has[0] = more[0];
    }
    errno = problem;
    return !problem;
}

/*
 * Attributes are restored in this order: changing the owner clears privileges, so permissions come
 * later; user attributes cannot be set on a read-only file, so they precede the permissions; access
 * control lists change permissions; flags change attributes in which btrfs stores them; every
 * change updates times, so these come last.
 */

#define PRIVILEGES (S_ISUID | S_ISGID | S_ISVTX)

/* A file whose attributes are being restored. */
struct restoring {
    struct bw_target *target;
    int descriptor;
    const char *path;
    size_t length;
    const struct bw_target_attributes *attributes;
    const struct stat *status; /* before the attributes are restored; NULL: unknown */
    char itself[sizeof "/proc/self/fd/" + 12]; /* path of an O_PATH descriptor, for calls that do
                                                * not accept these; "": not needed */
    bool lowered, without_owner, without_xattrs;
};

static void report_missed(const struct restoring *restoring, const char *problem)
{
    const struct bw_target_options *options = &restoring->target->options;
    options->missed(options->context,
                    bw_target_error(errno, problem, restoring->path, restoring->length));
}

/* Handles the error of an owner or of permissions: FAT has neither, and without `preserve`, it is
 * enough to count its files. */
static void report_unless_absent(struct restoring *restoring, const char *problem)
{
    const struct bw_target *target = restoring->target;
    const bool is_absent =
        errno == ENOSYS || errno == EOPNOTSUPP || (errno == EPERM && target->has_no_owners);
    if (is_absent && !target->options.preserve)
        restoring->without_owner = true;
    else
        report_missed(restoring, problem);
}

static bool is_device(const struct bw_inode *inode)
{
    return S_ISBLK(inode->mode) || S_ISCHR(inode->mode);
}

/* Without `preserve`, only the user may open device nodes, because these give access to more than
 * the folder. */
static bool stays_with_user(const struct bw_target *target, const struct bw_inode *inode)
{
    return is_device(inode) && !target->options.preserve;
}

/* Changes the owner, unless it is correct already, as for most files: that would cost a transaction
 * of the file system. fchownat(2), which accepts O_PATH descriptors, could change any file, so a
 * confined process may call only fchown(2). */
static bool change_owner(const struct restoring *restoring, uid_t user, gid_t group)
{
    const struct stat *status = restoring->status;
    if (status && (user == (uid_t)-1 || status->st_uid == user) && status->st_gid == group)
        return true;
    return (*restoring->itself ? fchownat(restoring->descriptor, "", user, group, AT_EMPTY_PATH)
                               : fchown(restoring->descriptor, user, group)) == 0;
}

/* The permissions to set with these options; symbolic links have none. */
static mode_t target_mode(const struct bw_target *target, const struct bw_inode *inode)
{
    mode_t mode = inode->mode & (PRIVILEGES | 0777);
    if (target->options.preserve)
        return mode;
    if (is_device(inode))
        return mode & 0600;
    /* without its sticky bit, others could delete files in a directory */
    return mode & (S_ISDIR(inode->mode) ? 0777 | S_ISVTX : 0777);
}

static bool has_name(const struct bw_xattr *xattr, const char *name)
{
    return strcmp((const char *)xattr->name, name) == 0;
}

/* Removes an attribute that the file does not have in the image. */
static void remove_xattr(const struct restoring *restoring, const char *name)
{
    for (size_t i = 0; i < restoring->attributes->xattr_count; i++)
        if (has_name(&restoring->attributes->xattrs[i], name))
            return;
    if (*restoring->itself)
        removexattr(restoring->itself, name);
    else
        fremovexattr(restoring->descriptor, name);
}

/* Restores the user attributes, which do not affect permissions, or all others. */
static void restore_xattrs(struct restoring *restoring, bool of_user)
{
    if (stays_with_user(restoring->target, restoring->attributes->inode))
        return;
    for (size_t i = 0; i < restoring->attributes->xattr_count; i++) {
        const struct bw_xattr *xattr = &restoring->attributes->xattrs[i];
        const char *name = (const char *)xattr->name;
        if ((strncmp(name, "user.", 5) == 0) != of_user)
            continue;
        if (has_name(xattr, "security.capability") && !restoring->target->options.preserve) {
            restoring->lowered = true;
            continue;
        }
        int failed;
        if (*restoring->itself)
            failed = setxattr(restoring->itself, name, xattr->value, xattr->value_length, 0);
        else
            failed = fsetxattr(restoring->descriptor, name, xattr->value, xattr->value_length, 0);
        /* other file systems do not support properties of btrfs */
        if (!failed || (errno == EOPNOTSUPP && strncmp(name, "btrfs.", 6) == 0))
            continue;
        /* counted, because it may affect each file */
        if (errno == EOPNOTSUPP && !restoring->target->options.preserve) {
            restoring->without_xattrs = true;
            continue;
        }
        int problem = errno;
        char message[320];
        snprintf(message, sizeof message, "cannot restore its attribute %s", name);
        errno = problem;
        report_missed(restoring, message);
    }
}

/* Whether two times are equal, or `there` is less by at most a second. */
static bool is_within_second(time_t there, time_t wanted)
{
    return (uint64_t)wanted - (uint64_t)there <= 1;
}

static struct restoring begin_restoring(struct bw_target *target, int descriptor, const char *path,
                                        size_t length,
                                        const struct bw_target_attributes *attributes)
{
    struct restoring restoring = {.target = target,
                                  .descriptor = descriptor,
                                  .path = path,
                                  .length = length,
                                  .attributes = attributes};
    if (!S_ISREG(attributes->inode->mode) && !S_ISDIR(attributes->inode->mode))
        snprintf(restoring.itself, sizeof restoring.itself, "/proc/self/fd/%d", descriptor);
    return restoring;
}

static void restore_all(struct restoring *restoring)
{
    const struct bw_inode *inode = restoring->attributes->inode;
    struct bw_target *target = restoring->target;

    /* The owner; then whether the owner and group in the image are the actual ones. A user can set
     * a group by being its member. */
    bool has_user = inode->uid == geteuid(), has_group = false;
    if (!target->privileged) {
        has_group = change_owner(restoring, (uid_t)-1, inode->gid);
        target->foreign += !has_user || !has_group;
    } else {
        const bool is_wanted = !stays_with_user(target, inode);
        has_user = has_group = is_wanted && change_owner(restoring, inode->uid, inode->gid);
        if (is_wanted && !has_user)
            report_unless_absent(restoring, "cannot restore its owner");
    }
    restore_xattrs(restoring, true);

    /* The permissions, but never privileges of another user or group than in the image. */
    if (!S_ISLNK(inode->mode)) {
        mode_t mode = target_mode(target, inode);
        restoring->lowered |= mode != (inode->mode & (PRIVILEGES | 0777));
        if (!S_ISDIR(inode->mode) && !has_user)
            mode &= ~(mode_t)S_ISUID;
        if (!S_ISDIR(inode->mode) && !has_group)
            mode &= ~(mode_t)S_ISGID;
        if (*restoring->itself ? chmod(restoring->itself, mode)
                               : fchmod(restoring->descriptor, mode))
            report_unless_absent(restoring, "cannot restore its permissions");
    }

    /* Access control lists may be inherited from the parent directory. The folder itself may have
     * had some before. */
    if (target->has_default_acl || !restoring->length) {
        remove_xattr(restoring, BW_ACL_ACCESS);
        remove_xattr(restoring, BW_ACL_DEFAULT);
    }

    /* Flags that are only hints are not reported if the file system lacks them. */
    if (!*restoring->itself) {
        bw_target_set_flags(restoring->descriptor, inode, BW_FLAGS_ANY);
        if (S_ISDIR(inode->mode))
            bw_target_set_flags(restoring->descriptor, inode, BW_FLAGS_EMPTY);
        restoring->lowered |=
            has_flags(inode, BW_FLAGS_PROTECT) && !bw_target_is_protected(target, inode);
    }
    /* btrfs adds a property to a file with the flag for compression. */
    if (inode->flags & BW_INODE_COMPRESS)
        remove_xattr(restoring, BW_COMPRESSION_PROPERTY);
    restore_xattrs(restoring, false);

    const struct timespec times[2] = {inode->atime, inode->mtime};
    struct stat status;
    int result = *restoring->itself ? utimensat(AT_FDCWD, restoring->itself, times, 0)
                                    : futimens(restoring->descriptor, times);
    const bool is_clamped = !result && !bw_target_is_always_stored(&inode->mtime) &&
                            !fstat(restoring->descriptor, &status) &&
                            !is_within_second(status.st_mtim.tv_sec, inode->mtime.tv_sec);
    if (result || is_clamped) {
        errno = result ? errno : EOVERFLOW;
        report_missed(restoring, "cannot restore its times");
    }
    target->lowered += restoring->lowered;
    target->without_owner += restoring->without_owner;
    target->without_xattrs += restoring->without_xattrs;
}

void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes)
{
    struct stat status;
    struct restoring restoring = begin_restoring(target, descriptor, path, length, attributes);
    restoring.status = fstat(descriptor, &status) ? NULL : &status;
    restore_all(&restoring);
}

bool bw_target_is_always_stored(const struct timespec *time)
{
    enum { YEAR_1980 = 315532800, YEAR_2038 = INT32_MAX };
    return time->tv_sec >= YEAR_1980 && time->tv_sec <= YEAR_2038;
}

bool bw_target_is_same_time(const struct timespec *there, const struct timespec *wanted)
{
    if (bw_same_time(there, wanted))
        return true;
    /* some file systems store whole seconds, some only even ones */
    return there->tv_nsec == 0 && is_within_second(there->tv_sec, wanted->tv_sec);
}

bool bw_target_has_permissions(const struct bw_target *target, const struct stat *status,
                               const struct bw_inode *inode)
{
    mode_t mode = target_mode(target, inode), ignored = 0;
    if (!target->privileged)
        ignored = S_ISGID; /* cleared by the system if the user is not a member of the group */
    bool owned = target->privileged ? status->st_uid == inode->uid && status->st_gid == inode->gid
                                    : status->st_uid == geteuid();
    return owned && ((status->st_mode ^ mode) & 07777 & ~ignored) == 0;
}

bool bw_target_leaves_out(const struct bw_target *target, const struct bw_inode *inode)
{
    return is_device(inode) && (inode->device || S_ISBLK(inode->mode)) && !target->options.preserve;
}

bool bw_target_is_protected(const struct bw_target *target, const struct bw_inode *inode)
{
    return target->options.preserve && has_flags(inode, BW_FLAGS_PROTECT);
}

void bw_target_restore_end(struct bw_target *target, int descriptor, const struct stat *status,
                           const char *path, size_t length,
                           const struct bw_target_attributes *attributes)
{
    const struct bw_inode *inode = attributes->inode;
    struct restoring restoring = begin_restoring(target, descriptor, path, length, attributes);
    restoring.status = status;
    bool same_time = bw_target_is_same_time(&status->st_mtim, &inode->mtime);
    errno = ESTALE;
    if (!S_ISDIR(inode->mode) && !same_time) {
        report_missed(&restoring, "it has been replaced");
        return;
    }
    /* an earlier run may have restored the directory, and this one has changed nothing in it */
    bool done = !S_ISDIR(inode->mode) || (target->options.skip_existing && same_time &&
                                          bw_target_has_permissions(target, status, inode));
    if (!done)
        restore_all(&restoring);
    if (bw_target_is_protected(target, inode) &&
        !bw_target_set_flags(descriptor, inode, BW_FLAGS_PROTECT))
        report_missed(&restoring, "cannot make it immutable or append-only");
}
