#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Many images: every command of docs/fleet on a dozen, where its tools are installed; the script for
# Slurm and the manifest for Kubernetes with what these would set.
set -uo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/documented.bash"

"$ROOT/scripts/unpack-fixtures" "$BUILD/fixtures" mixed old-4k || exit 1
fleet=$ROOT/docs/fleet
mkdir "$WORK/bin" "$WORK/images"
ln -s "$PROGRAM" "$fleet/one-image" "$fleet/one-share" "$WORK/bin"
ln -s "$fleet"/* "$WORK"
export PATH=$WORK/bin:$PATH
duckdb_of_node "$WORK/bin"
cd "$WORK" || exit 1
for name in a b c d e f; do
    ln -s "$BUILD/fixtures/mixed/dev1.img" "images/$name.img"
    ln -s "$BUILD/fixtures/old-4k/dev1.img" "images/$name $name.img"
done
find images -name '*.img' | sort > images.list

# answers FOLDER: the number of images for which the folder has results.
answers() { find "$1" -name '*.image.json' -size +0 | wc -l; }

# A healthy image, a damaged one, and a file that is not an image.
holds "one-image reads an image" one-image results "images/b b.img"
holds "one-image lists the files of the image" cmp results/images_b_b.img.files.json \
    <(run_json --json -o path,size,mtime,inode,subvolume "images/b b.img")
: > nothing.img
holds "what is no image fails" [ "$(one-image results nothing.img; echo $?)" -ne 0 ]
holds "a file that is no image has a record with status 2" grep -qx \
    '{"id":null,"image":"nothing.img","status":2,"info":null,"subvolumes":null}' \
    results/nothing.img.image.json

# The record of an image: the same id for the same state, whatever the image is called.
id_of() { grep -o '^{"id":"[0-9a-f]\{64\}"' "results/$1.image.json"; }
one-image results images/b.img
holds "the record of an image has an id" id_of images_b.img
one-image results images/a.img
is "another name, the same id" "$(id_of images_a.img)" "$(id_of images_b.img)"
holds "images in other states have other ids" \
    [ "$(id_of images_b_b.img)" != "$(id_of images_b.img)" ]
holds "the record has info and subvolumes" grep -q \
    '"info":{"label":.*"fsid":"[-0-9a-f]*".*,"subvolumes":\[{"subvolume":5,.*"uuid":"[-0-9a-f]*"' \
    results/images_b.img.image.json
echo kept > results/images_a.img.image.json
one-image results images/a.img
is "what is done is not done again" "$(cat results/images_a.img.image.json)" kept
rm -r results

# Slurm: the array tasks together process every image exactly once.
for task in 0 1 2 3 4; do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=5 sh slurm-array images.list slurm ||
        fail "task $task of a Slurm array"
    answers slurm
done > shares
is "the shares of an array" "$(paste -s -d ' ' shares)" "2 5 8 10 12"

# Kubernetes: the structure, and the command with what the variables of an index become.
check_manifest() {
    python3 - kubernetes.yaml << 'END'
import sys
import yaml
job = yaml.safe_load(open(sys.argv[1]))
assert job["apiVersion"] == "batch/v1" and job["kind"] == "Job"
spec = job["spec"]
assert spec["completionMode"] == "Indexed" and 0 < spec["parallelism"] <= spec["completions"]
pod = spec["template"]["spec"]
assert pod["restartPolicy"] in ("Never", "OnFailure")
volumes = {volume["name"] for volume in pod["volumes"]}
for container in pod["containers"]:
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    program, *rest = container["command"] + container["args"]
    assert all(isinstance(word, str) for word in rest), rest
    assert program == "one-share" and rest[0] == "$(JOB_COMPLETION_INDEX)"
    assert int(rest[1]) == spec["completions"]
END
}
if python3 -c 'import yaml' 2> /dev/null; then
    holds "the manifest for Kubernetes is valid" check_manifest
else
    skip "yaml for Python" "the manifest"
fi

# ssh to this machine, without a port: the client talks to the daemon through a pipe.
throwaway_ssh() {
    local daemon key
    daemon=$(PATH=$PATH:/usr/sbin command -v sshd) && have ssh-keygen ssh parallel || return
    for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$WORK/$key" || return; done
    printf '%s\n' "HostKey $WORK/host" "AuthorizedKeysFile $WORK/user.pub" 'StrictModes no' \
        'UsePAM no' 'PermitRootLogin yes' 'PidFile none' "SetEnv PATH=$PATH" > sshd_config
    # As root it wants a folder in /run, where nothing shall be left.
    cat > daemon << END
#!/bin/sh
exec 2> /dev/null
[ "\$(id -u)" -ne 0 ] || [ -d /run/sshd ] || exec unshare -m sh -c \\
    'mount -t tmpfs none /run && mkdir /run/sshd && exec $daemon -i -f $WORK/sshd_config'
exec $daemon -i -f $WORK/sshd_config
END
    chmod +x daemon
    printf '%s\n' 'Host server' "ProxyCommand $WORK/daemon" "IdentityFile $WORK/user" \
        "User $(id -un)" 'StrictHostKeyChecking no' "UserKnownHostsFile /dev/null" \
        'LogLevel ERROR' > ssh_config
    export PARALLEL_SSH="ssh -F $WORK/ssh_config"
    [ "$(timeout 20 $PARALLEL_SSH server btrfs-walk --version)" = "$("$PROGRAM" --version)" ]
}
no_ssh= no_server=
throwaway_ssh 2> err || { no_ssh=1; skip "ssh to this machine" "$(head -n 1 err)"; }

# A web server.
coproc SERVER { exec python3 "$ROOT/tests/support/range_server.py" images; }
server_pid=$SERVER_PID
trap 'kill $server_pid; rm -rf "$WORK"' EXIT
read -r port <&"${SERVER[0]}"
if ! have nbdkit || ! nbdkit curl --dump-plugin > /dev/null 2>&1 ||
    ! grep -q NBD=1 "$BUILD/features"; then
    no_server=1
    skip "nbdkit with curl, and libnbd" "a web server"
fi

while IFS= read -r -d '' line; do
    case $line in
    '' | '#'*) continue ;;
    *server*)
        [ -z "$no_ssh" ] || continue
        [[ $line == *--nonall* ]] || rm -r results
        ;;
    *localhost*) [ -z "$no_server" ] || continue ;;
    esac
    if tool=$(lacks_tool "$line"); then skip "$tool" "${line%%$'\n'*}"; continue; fi
    works "$WORK" "${line//localhost:8080/127.0.0.1:$port}" "$line"
    case $line in
    parallel*./one-image*) is "parallel reads all images: $line" "$(answers results)" 12 ;;
    *--nonall*) is "parallel prints the answer of each machine" \
        "$(grep -c '^server.*"uuid"' answers.txt)" 1 ;;
    *large.bin*) holds "a file in all images" [ "$(grep -c large.bin out)" -ge 12 ] ;;
    esac
done < <(documented "$fleet/README.md")
finish
