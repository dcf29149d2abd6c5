/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes go on in this order: changing the owner takes privileges away, so permissions come behind it;
 * what nobody may write has no attributes of its user's put on it, so those come before; an access list
 * changes permissions; whatever is changed changes times.
 */
#include "export/target_attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "export/target_path.h"

#define PRIVILEGES  (S_ISUID | S_ISGID | S_ISVTX)
#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* A file whose attributes are being restored. */
struct restoring {
    struct bw_target *target;
    int descriptor; /* -1: by name */
    const char *path;
    size_t length;
    const struct bw_target_attributes *attributes;
    char by_name[sizeof "/proc/self/fd//" + 12 + 256]; /* for calls that take no descriptor of a directory */
    bool lowered;
};

static void miss(const struct restoring *restoring, const char *what)
{
    const struct bw_target_options *options = &restoring->target->options;
    options->missed(options->context, bw_target_error(errno, what, restoring->path, restoring->length));
}

static bool is_device(const struct bw_inode *inode)
{
    return S_ISBLK(inode->mode) || S_ISCHR(inode->mode);
}

/* Others than the user may open a device only if that was asked for: it leads out of the folder. */
static bool stays_with_user(const struct restoring *restoring)
{
    return is_device(restoring->attributes->inode) && !restoring->target->options.preserve;
}

static void restore_owner(struct restoring *restoring)
{
    const struct bw_inode *inode = restoring->attributes->inode;
    struct bw_target *target = restoring->target;
    if (!target->privileged) {
        target->foreign += inode->uid != geteuid();
        return;
    }
    if (stays_with_user(restoring))
        return;
    int result = restoring->descriptor >= 0
                     ? fchown(restoring->descriptor, inode->uid, inode->gid)
                     : fchownat(target->directory, target->name, inode->uid, inode->gid, AT_SYMLINK_NOFOLLOW);
    if (result)
        miss(restoring, "cannot restore its owner");
}

static void restore_mode(struct restoring *restoring)
{
    const struct bw_inode *inode = restoring->attributes->inode;
    struct bw_target *target = restoring->target;
    mode_t wanted = inode->mode & (PRIVILEGES | 0777), mode = wanted;
    if (S_ISLNK(inode->mode))
        return;
    /* Without its sticky bit a directory would give others more than it should. */
    if (!target->options.preserve)
        mode &= is_device(inode) ? 0600 : S_ISDIR(inode->mode) ? 0777 | S_ISVTX : 0777;
    restoring->lowered |= mode != wanted;
    int result = restoring->descriptor >= 0
                     ? fchmod(restoring->descriptor, mode)
                     : fchmodat(target->directory, target->name, mode, AT_SYMLINK_NOFOLLOW);
    if (result)
        miss(restoring, "cannot restore its permissions");
}

static bool has_name(const struct bw_xattr *xattr, const char *name)
{
    return strcmp((const char *)xattr->name, name) == 0;
}

static int set_xattr(const struct restoring *restoring, const struct bw_xattr *xattr)
{
    const char *name = (const char *)xattr->name;
    return restoring->descriptor >= 0
               ? fsetxattr(restoring->descriptor, name, xattr->value, xattr->value_length, 0)
               : lsetxattr(restoring->by_name, name, xattr->value, xattr->value_length, 0);
}

static void restore_xattr(struct restoring *restoring, const struct bw_xattr *xattr)
{
    if (has_name(xattr, "security.capability") && !restoring->target->options.preserve) {
        restoring->lowered = true;
        return;
    }
    errno = EINVAL;
    bool cut = memchr(xattr->name, '\0', xattr->name_length); /* would be another name */
    if (!cut && set_xattr(restoring, xattr) == 0)
        return;
    /* Properties of btrfs mean nothing to other file systems. */
    if (!cut && errno == EOPNOTSUPP && strncmp((const char *)xattr->name, "btrfs.", 6) == 0)
        return;
    int problem = errno;
    char what[320];
    snprintf(what, sizeof what, "cannot restore its attribute %s", (const char *)xattr->name);
    errno = problem;
    miss(restoring, what);
}

/* What it got from the directory it was made in. */
static void remove_acl(const struct restoring *restoring, const char *name)
{
    for (size_t i = 0; i < restoring->attributes->xattr_count; i++)
        if (has_name(&restoring->attributes->xattrs[i], name))
            return;
    if (restoring->descriptor >= 0)
        fremovexattr(restoring->descriptor, name);
    else
        lremovexattr(restoring->by_name, name);
}

static void remove_inherited(const struct restoring *restoring)
{
    if (!restoring->target->has_default_acl)
        return;
    remove_acl(restoring, ACL_ACCESS);
    remove_acl(restoring, ACL_DEFAULT);
}

/* Whether an attribute is the user's own, and has nothing to do with permissions. */
static bool is_plain(const struct bw_xattr *xattr)
{
    return strncmp((const char *)xattr->name, "user.", 5) == 0;
}

static void restore_xattrs(struct restoring *restoring, bool plain)
{
    if (stays_with_user(restoring))
        return;
    for (size_t i = 0; i < restoring->attributes->xattr_count; i++)
        if (is_plain(&restoring->attributes->xattrs[i]) == plain)
            restore_xattr(restoring, &restoring->attributes->xattrs[i]);
}

static struct timespec time_of(int64_t nanoseconds)
{
    const int64_t second = 1000000000;
    int64_t rest = nanoseconds % second;
    rest += rest < 0 ? second : 0;
    return (struct timespec){(time_t)((nanoseconds - rest) / second), (long)rest};
}

static void restore_times(const struct restoring *restoring)
{
    const struct bw_inode *inode = restoring->attributes->inode;
    const struct bw_target *target = restoring->target;
    const struct timespec times[2] = {time_of(inode->atime), time_of(inode->mtime)};
    int result = restoring->descriptor >= 0
                     ? futimens(restoring->descriptor, times)
                     : utimensat(target->directory, target->name, times, AT_SYMLINK_NOFOLLOW);
    if (result)
        miss(restoring, "cannot restore its times");
}

void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes)
{
    struct restoring restoring = {target, descriptor, path, length, attributes, {0}, false};
    if (descriptor < 0)
        snprintf(restoring.by_name, sizeof restoring.by_name, "/proc/self/fd/%d/%s", target->directory,
                 target->name);
    restore_owner(&restoring);
    restore_xattrs(&restoring, true);
    restore_mode(&restoring);
    remove_inherited(&restoring);
    restore_xattrs(&restoring, false);
    restore_times(&restoring);
    target->lowered += restoring.lowered;
}

void bw_target_restore_directory(struct bw_target *target, const char *path, size_t length,
                                 const struct bw_target_attributes *attributes)
{
    struct bw_error *error = bw_target_enter(target, path, length);
    int descriptor = -1;
    if (!error) {
        descriptor = bw_target_open_below(target->directory, target->name, target->options.step_by_step);
        if (descriptor < 0)
            error = bw_target_error(errno, "cannot restore its attributes", path, length);
    }
    if (error)
        target->options.missed(target->options.context, error);
    else
        bw_target_restore(target, descriptor, path, length, attributes);
    if (descriptor >= 0)
        close(descriptor);
}
