/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that makes symbolic links and special files (export/target_maker.h). It is started
 * before the image is opened, and ends when the other one does. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/sandbox.h"
#include "cli/export/extract.h"

/* The child. */
static void serve(const struct cmd_common *common, struct bw_target *target, int channel)
{
    cmd_ignore_exit_signals();
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    cmd_sandbox_enter_maker(common);
    bw_target_serve_orders(target, channel);
    _exit(0);
}

struct bw_error *extract_start_maker(const struct cmd_common *common, struct extract *extract)
{
    int channel[2];
    if (!cmd_sandbox_is_on(common))
        return NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
        return bw_error_from_errno(errno, "cannot make a socket");
    pid_t child = fork();
    if (child == 0) {
        close(channel[0]);
        serve(common, &extract->target, channel[1]);
    }
    int problem = errno;
    close(channel[1]);
    extract->maker.channel = channel[0];
    extract->maker_process = child > 0 ? child : 0;
    return child < 0 ? bw_error_from_errno(problem, "cannot start a process") : NULL;
}

/* In a container there may be nobody else to wait for it. */
void extract_end_maker(struct extract *extract)
{
    bw_target_maker_close(&extract->maker);
    while (extract->maker_process && waitpid(extract->maker_process, NULL, 0) < 0 && errno == EINTR)
        ;
    extract->maker_process = 0;
}
