#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Dumps of send streams: the lines of 'btrfs receive --dump', columns, JSON; damaged streams.
# shellcheck source=tests/command/common.bash
source "$(dirname "$0")/common.bash"
cd "$WORK" || exit 1
U=00112233445566778899aabbccddeeff
UUID=00112233-4455-6677-8899-aabbccddeeff
T=1970-01-01T00:00

# stream FILE [VERSION]: makes a stream of the lines on stdin.
stream() { python3 "$ROOT/tests/support/make_stream.py" "${2:-1}" > "$1"; }

stream full <<END
subvol PATH=vol UUID=$U CTRANSID=7
mkfile PATH=o257-7-0 INO=257
rename PATH=o257-7-0 PATH_TO=a\x20b\n
write PATH=a\x20b\n FILE_OFFSET=4096 DATA=hello
symlink PATH=s PATH_LINK=a\x20b\n INO=258
link PATH=l PATH_LINK=s
mknod PATH=dev INO=259 RDEV=286338160 MODE=8612
set_xattr PATH=s XATTR_NAME=user.x XATTR_DATA=v\xff
remove_xattr PATH=s XATTR_NAME=user.x
clone FILE_OFFSET=0 CLONE_LEN=5 PATH=c CLONE_UUID=$U CLONE_CTRANSID=7 CLONE_PATH=d CLONE_OFFSET=9
truncate PATH=c SIZE=11
chown PATH=c UID=1 GID=2
chmod PATH=c MODE=0o4755
utimes PATH=c ATIME=1 MTIME=2 CTIME=3
update_extent PATH=c FILE_OFFSET=1 SIZE=2
unlink PATH=c
99
end
END
cat > lines <<END
subvol          ./vol                           uuid=$UUID transid=7
mkfile          ./vol/o257-7-0
rename          ./vol/o257-7-0                  dest=./vol/a\ b\n
write           ./vol/a\ b\n                    offset=4096 len=5
symlink         ./vol/s                         dest=a\ b\n
link            ./vol/l                         dest=s
mknod           ./vol/dev                       mode=20644 dev=0x11112c70
set_xattr       ./vol/s                         name=user.x data=v\377 len=2
remove_xattr    ./vol/s                         name=user.x
clone           ./vol/c                         offset=0 len=5 from=./vol/d clone_offset=9
truncate        ./vol/c                         size=11
chown           ./vol/c                         gid=2 uid=1
chmod           ./vol/c                         mode=4755
utimes          ./vol/c                         atime=$T:01+0000 mtime=$T:02+0000 ctime=$T:03+0000
update_extent   ./vol/c                         offset=1 len=2
unlink          ./vol/c
END
expect 'a stream' 0 - dump full
holds 'has the lines of btrfs receive --dump' diff lines out
expect "dump of a stream in columns" 0 - dump -o command,path,data_length,rdev_major,rdev_minor full
holds "columns of a write have its length" out_has '^write.a b\$?.*' # the newline ends the line
expect "dump of a stream as JSON" 0 - dump --json full
is "JSON of mknod has the numbers of the device" \
    "$(grep '"mknod"' out | grep -o '"rdev_m.*r":[0-9]*')" \
   '"rdev_major":300,"rdev_minor":70000'
is "JSON has a row for each command" "$(wc -l < out)" 18
holds "JSON has a row for END" out_has '"command":"end"'

LENGTHS='UNENCODED_FILE_LEN=10 UNENCODED_LEN=11 UNENCODED_OFFSET=1'
rest="$(tr 'A-Z ' 'a-z,' <<< "$LENGTHS" | sed 's/,/, /g'), compression=2, encryption=0"
IDS="uuid=01${UUID#00} transid=9 parent_uuid=$UUID parent_transid=7"
stream second 2 <<END
snapshot PATH=two UUID=${U/00/01} CTRANSID=9 CLONE_UUID=$U CLONE_CTRANSID=7
encoded_write PATH=a FILE_OFFSET=0 $LENGTHS COMPRESSION=2 DATA=zzz
fallocate PATH=a FALLOCATE_MODE=3 FILE_OFFSET=1 SIZE=2
fileattr PATH=a FILEATTR=256
end
END
cat > lines <<END
snapshot        ./two                           $IDS
encoded_write   ./two/a                         offset=0 len=3, $rest
fallocate       ./two/a                         mode=3 offset=1 len=2
fileattr        ./two/a                         fileattr=0x100
END
expect 'an incremental stream' 0 - dump second
holds "an incremental stream has the lines of protocol 2" diff lines out
cat full second > both
expect 'one stream after the other' 0 - dump both
is 'has the lines of both' "$(wc -l < out)" 20

stream early <<END
subvol PATH=vol UUID=$U CTRANSID=7
utimes PATH=c ATIME=9223372036854775808 MTIME=18446744073709551615 CTIME=0
end
END
expect 'times before 1970' 0 - dump early
holds 'the first time that can be, and the second before 1970' \
    out_has '.*atime=1677-09-21T00:12:43.0000 mtime=1969-12-31T23:59:59.0000 .*'

# Damage.
stream bad <<END
subvol PATH=vol UUID=$U CTRANSID=7
bad mkfile PATH=f
chmod PATH=f
mkdir PATH=x\x00y
mkdir PATH=d
END
expect 'a wrong checksum' 1 'checksum mismatch of the command at 66' dump bad
holds "a missing attribute is reported" grep -q 'command chmod at .*: MODE is missing' err
holds "a NUL in a path is reported" grep -q 'PATH contains a NUL' err
holds "a missing END is reported" grep -q 'without END' err
is 'the commands between are printed' "$(cut -d ' ' -f 1 out | tr '\n' ' ')" 'subvol mkdir '
head -c 105 full > cut
expect 'a truncated stream' 1 'cut off: it ends at 105, within the command at' dump cut
printf 'subvol PATH=v UUID=%s CTRANSID=1\nlength 4294967295 mkdir PATH=d\n' $U | stream long
expect 'a command of 4 GiB' 1 'cut off' dump long
printf 'end\nraw garbage\n' | stream garbage
expect 'data after END' 1 'there is no send stream at 27' dump garbage
head -c 13 full > version && printf '\4\0\0\0' >> version
expect 'an unknown version' 3 'has version 4' dump version
expect 'options for trees' 2 'send streams have no trees' dump --tree fs full
expect 'other commands see what precedes an error' 1 'is incomplete' ls full
finish
