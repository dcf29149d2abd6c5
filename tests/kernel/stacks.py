#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""stacks - random file systems on arrays, volume groups and encrypted volumes made by the kernel

usage: sudo tests/kernel/stacks.py [--count N] [--seed S] [--program PROGRAM] [--keep DIRECTORY]

containers.py writes containers by itself; here MD, the device mapper, mdadm, LVM, cryptsetup and
sfdisk make them, one on the other, with random options. Meanwhile, members of arrays fail, or are
missing for a while and come back; arrays are left while they are rebuilt. In the end some images
are left out, as far as the others suffice. The hashes of all files must be those of the last mount.
Do not run it on a machine that uses LVM or MD itself. Needs root, mkfs.btrfs and these tools, and a
kernel with MD and the device mapper; if this machine's has not, a guest makes them (guest.py).

Some arrays of RAID4, 5 and 6 have a journal. Their images may be copied while they are in use, so
that only the journal has some blocks. Members may have lists of bad blocks. A snapshot that is not
a thin volume has to be refused, with the name of its origin.
"""
import glob
import json
import os
import random
import shutil
import sys
import time

import guest
import kernel
from containers import Source
from kernel import run

MIB = 1 << 20
LVM = ('devices{use_devicesfile=0 scan="/dev" filter=["a|/dev/loop|","a|/dev/md|",'
       '"a|/dev/mapper/luks|","r|.*|"]} activation{udev_sync=0 udev_rules=0 monitoring=0 '
       'raid_region_size=64} global{event_activation=0} backup{backup=0 archive=0}')
# level: numbers of devices, layouts, members that can be missing
LEVELS = {"linear": ([2, 3], [""], 0), "0": ([2, 3, 4], [""], 0), "1": ([2, 3], [""], 1),
          "4": ([3, 4], [""], 1),
          "5": ([3, 4, 5], ["la", "ra", "ls", "rs", "parity-first", "parity-last"], 1),
          "6": ([4, 5], ["ls", "la", "ra", "rs", "parity-first", "left-asymmetric-6"], 2),
          "10": ([2, 3, 4, 5], ["n2", "f2", "o2", "n3", "f3", "o3"], 1)}


class Layer:
    """Devices, and the one that consists of them. Of the members, `spare` can be missing."""
    spare, serial, volume, snapshot, has_journal = 0, 0, None, None, False

    def __init__(self, stack, members):
        self.stack, self.random, self.members = stack, stack.random, members
        Layer.serial += 1
        self.name = f"{type(self).__name__.lower()}{os.getpid()}x{Layer.serial}"
        self.device = self.kind = ""

    def change(self):
        """Something that happens while the file system is mounted."""

    def mark_stale(self, member):
        self.spare -= 1
        self.stack.stale.append(member)


class Array(Layer):
    """An MD array."""

    def make(self):
        r, count = self.random, len(self.members)
        level = r.choice([level for level, (counts, _, spare) in LEVELS.items()
                          for _ in range(spare * 2 + 1) if count in counts])
        layout, self.spare = r.choice(LEVELS[level][1]), LEVELS[level][2]
        if layout[1:] == "3" and count < 3:
            layout = layout[0] + "2"
        words = ["--level", level, "-n", count, "-e",
                 r.choice(["0.90", "1.0", "1.1", "1.2", "1.2"])]
        words += ["--layout", layout] if layout else []
        words += ["--chunk", r.choice([4, 64, 512])] if level not in ("1", "linear") else []
        self.has_journal = level in "456" and r.random() < 0.4
        if self.has_journal:
            words[words.index("-e") + 1] = "1.2"
            words += ["--write-journal", self.stack.add_image(100 * MIB)]
        elif self.spare:
            words += ["--bitmap", r.choice(["none", "internal"])]
            words += ["--assume-clean"] if level not in "456" and r.random() < 0.5 else []
        self.device, self.kind = f"/dev/md{100 + Layer.serial}", f"md {' '.join(map(str, words))}"
        run("mdadm", "--create", "--run", self.device, *words, *self.members, check=True,
            input="y\n")
        run("mdadm", "--wait", self.device)
        if self.has_journal:
            self.members = self.members + [self.stack.loops[-1]]
            mode = r.choice(["write-through", "write-back", "write-back"])
            self.stack.log.append(mode)
            with open(f"/sys/block/{os.path.basename(self.device)}/md/journal_mode", "w",
                      encoding="ascii") as file:
                file.write(mode)

    def change(self):
        """A member fails; it may be removed, and be rebuilt for a while."""
        r = self.random
        if not self.spare or self.has_journal:
            return
        member = r.choice(self.members)
        how = r.choice(["fail", "bad", "replace"]) if "0.90" not in self.kind else "fail"
        if how == "bad":
            return self.add_bad_blocks(member)
        if how == "replace":
            return self.replace(member)
        run("mdadm", self.device, "--fail", member, check=True)
        self.stack.log.append(f"{member} has failed")
        time.sleep(r.choice([0, 0.5]))
        self.stack.write()
        self.mark_stale(member)
        if r.random() < 0.6:
            run("mdadm", self.device, "--remove", member)
            self.stack.write()
        if r.random() < 0.6:
            with open("/proc/sys/dev/raid/speed_limit_max", "w", encoding="ascii") as file:
                file.write(r.choice(["100", "2000", "1000000"]))
            how = r.choice(["--add", "--re-add"])
            run("mdadm", self.device, how, member)
            self.stack.log.append(how)
            time.sleep(r.choice([0, 0.5, 3]))
            self.stack.write()

    def replace(self, member):
        """Another device gets the data of a member, slowly."""
        with open("/proc/sys/dev/raid/speed_limit_max", "w", encoding="ascii") as file:
            file.write(self.random.choice(["100", "10000"]))
        spare = self.stack.add_image(260 * MIB)
        run("mdadm", self.device, "--add", spare, check=True)
        run("mdadm", self.device, "--replace", member, "--with", spare, check=True)
        self.members = self.members + [spare]
        self.spare = 0
        self.stack.log.append(f"{member} is being replaced")
        self.stack.write()

    def add_bad_blocks(self, member):
        """As if writes to many places of a member had failed, which therefore keep old data."""
        folder = f"/sys/block/{os.path.basename(self.device)}/md/dev-{os.path.basename(member)}"
        with open(f"{folder}/offset", encoding="ascii") as file:
            first = int(file.read())
        for _ in range(self.random.choice([1, 20, 300])):
            place = first + self.random.randrange(0, 60 * MIB // 512, 8)
            try:
                with open(f"{folder}/bad_blocks", "w", encoding="ascii") as file:
                    file.write(f"{place} {self.random.choice([8, 64, 512])}\n")
            except OSError:
                break
        self.stack.log.append(f"{member} has bad blocks")
        self.spare = 0
        self.stack.write()

    def start(self):
        run("mdadm", "--assemble", "--run", self.device, *self.members, check=True)

    def stop(self):
        run("mdadm", "--stop", self.device, check=True)


class Group(Layer):
    """A volume group, and a volume of it."""

    def lvm(self, command, *words, check=True):
        return run("lvm", command, "--config", LVM, *words, check=check)

    def make(self):
        r, count = self.random, len(self.members)
        several = ["striped", "raid0", "raid0_meta", "mirror", "raid1", "raid1", "raid1"]
        self.kind = r.choice(["linear", "thin", "snapshot"] + (several if count > 1 else []))
        self.lvm("pvcreate", "-ff", "-y", "--dataalignment", r.choice(["64k", "1m", "4m"]),
                 "--pvmetadatacopies", r.choice(["1", "2"]), *self.members)
        self.lvm("vgcreate", "-s", r.choice(["1m", "4m", "64k"]), self.name, *self.members)
        if self.kind == "thin":
            self.make_thin(r, count)
        else:
            words = {"linear": [], "snapshot": [], "striped": ["-i", count, "-I", "64k"],
                     "raid0": ["-i", count], "raid0_meta": ["-i", count],
                     "raid1": ["-m", count - 1], "mirror": ["-m", count - 1, "--mirrorlog", "core"]}
            kind = "linear" if self.kind == "snapshot" else self.kind
            size = "40%FREE" if kind in ("raid1", "mirror") else "60%FREE"
            self.lvm("lvcreate", "-y", "-Wn", "-Zn", "-n", "root", "--type", kind, "-l", size,
                     *words[self.kind], self.name)
        self.spare = 1 if self.kind == "raid1" else 0
        self.device = f"/dev/{self.name}/root"
        self.volume = f"{self.name}/root" if self.kind in ("thin", "snapshot") else None
        self.lvm("vgmknodes", check=False)
        self.wait()

    def make_thin(self, r, count):
        pool = ["--type", "raid1", "-m", "1"] if count > 1 and r.random() < 0.4 else []
        self.lvm("lvcreate", "-Wn", "-y", "-n", "pool", "-l", "40%FREE", *pool, self.name)
        self.lvm("lvconvert", "-y", "-Zy", "--type", "thin-pool", "-c", r.choice(["64k", "256k"]),
                 f"{self.name}/pool")
        self.lvm("lvcreate", "-y", "-n", "root", "-V", "300m", "--thinpool", "pool", self.name)

    def wait(self):
        """Until the legs of mirrors are equal."""
        for _ in range(100):
            text = self.lvm("lvs", "--noheadings", "-a", "-o", "sync_percent", self.name).stdout
            if all(line.strip() in ("", "100.00") for line in text.splitlines()):
                return
            time.sleep(0.3)

    def change(self):
        r, stack = self.random, self.stack
        if self.kind == "snapshot":
            self.lvm("lvcreate", "-y", "-s", "-n", "snap", "-l", "30%FREE", f"{self.name}/root")
            self.snapshot = f"{self.name}/snap"
        elif self.kind == "thin":
            stack.unmount()
            self.lvm("lvcreate", "-y", "-s", "-n", r.choice(["aaa", "zzz"]), f"{self.name}/root")
            stack.mount_device()
        elif self.kind == "linear":
            self.lvm("lvextend", "-l", "+10%FREE", f"{self.name}/root")
        elif self.kind == "raid1" and set(self.members) <= set(stack.loops):
            self.lose()
        stack.write()

    def lose(self):
        """A physical volume is missing for a while."""
        stack, member = self.stack, self.random.choice(self.members)
        stack.log.append(f"{member} was missing")
        stack.down()
        run("losetup", "-d", member, check=True)
        stack.up()
        stack.write()
        stack.down()
        run("losetup", member, stack.images[stack.loops.index(member)], check=True)
        self.mark_stale(member)
        stack.up()

    def start(self):
        self.lvm("vgchange", "-ay", "--activationmode", "degraded", self.name)
        self.lvm("vgmknodes", check=False)

    def stop(self):
        self.lvm("vgchange", "-an", self.name)


class Luks(Layer):
    """An encrypted volume."""

    def make(self):
        r = self.random
        words = ["-c", r.choice(["aes-xts-plain64", "aes-cbc-plain64", "aes-xts-plain"]),
                 "-s", "256", "--pbkdf-force-iterations", "1000"]
        if r.random() < 0.5:
            words += ["--type", "luks1", "--align-payload", r.choice(["8", "2048", "4104"])]
        else:
            words += ["--type", "luks2", "--pbkdf", "pbkdf2", "--sector-size",
                      r.choice(["512", "4096"])]
        self.kind = " ".join(words)
        run("cryptsetup", "luksFormat", "-q", *words, "--key-file", self.stack.key,
            self.members[0], check=True)
        self.start()

    def start(self):
        self.device = f"/dev/mapper/{self.name}"
        run("cryptsetup", "open", "--key-file", self.stack.key, self.members[0], self.name,
            check=True)

    def stop(self):
        run("cryptsetup", "close", self.name, check=True)


class Partition(Layer):
    """One of several partitions."""

    def make(self):
        self.kind = self.random.choice(["gpt", "dos"])
        script = f"label: {self.kind}\n,20M\n,9M\n" + (",,E\n,3M\n,\n" if self.kind == "dos"
                                                       else ",10M\n,\n")
        run("sfdisk", "-q", "--no-reread", "--no-tell-kernel", "-W", "always", self.members[0],
            input=script, check=True)
        table = json.loads(run("sfdisk", "-J", self.members[0], check=True).stdout)
        self.place = table["partitiontable"]["partitions"][-1]
        self.start()

    def start(self):
        self.device = run("losetup", "-f", "--show", "-o", self.place["start"] * 512,
                          "--sizelimit", self.place["size"] * 512, self.members[0],
                          check=True).stdout.strip()

    def stop(self):
        run("losetup", "-d", self.device, check=True)


OUTER = [kind for kind, tool in ((Luks, "cryptsetup"), (Partition, "sfdisk"))
         if shutil.which(tool)]


class Stack(Source):
    """A file system on layers. `want` are the hashes of its files after the last write."""

    def __init__(self, chance, directory):
        super().__init__(chance, directory)
        self.layers, self.stale, self.log, self.writes = [], [], [], 0
        self.key = os.path.join(directory, "key")
        with open(self.key, "w", encoding="ascii") as file:
            file.write("secret")

    def __str__(self):
        kinds = [f"{type(layer).__name__} {layer.kind}" for layer in reversed(self.layers)]
        return " > ".join(kinds) + f"; {', '.join(self.log)}"

    def add_layer(self, kind, members):
        layer = kind(self, members)
        self.layers.append(layer)
        layer.make()
        return [layer.device]

    def make(self):
        r = self.random
        for _ in range(r.choice([1, 2, 2, 3, 3, 4, 5])):
            self.add_image(r.choice([260, 260, 270]) * MIB)
        devices = list(self.loops)
        if len(devices) > 1 and r.random() < 0.6:
            devices = self.add_layer(Array, devices)
        if len(devices) == 1 and r.random() < 0.2:
            devices = self.add_layer(r.choice(OUTER), devices)
        if len(devices) > 1 or r.random() < 0.6:
            devices = self.add_layer(Group, devices)
        if not self.layers or r.random() < 0.3:
            devices = self.add_layer(r.choice(OUTER), devices)
        run("mkfs.btrfs", "-q", "-f", "-m", "single", "-d", "single", *r.choice([
            [], ["-n", "4096"], ["--mixed", "-n", "4096"]]), devices[0], check=True)
        self.mount_device()
        self.write()

    def mount_device(self):
        run("mount", "-t", "btrfs", "-o", self.random.choice(["compress=zstd", "nodatasum"]),
            self.layers[-1].device, self.mount, check=True)

    def write(self):
        self.writes += 1
        folder = self.path(f"write{self.writes}")
        os.mkdir(folder)
        self.fill(folder, 1)
        for path in glob.glob(self.path("write*", "file*"))[::3]:
            with open(path, "r+b") as file:
                file.write(self.random.randbytes(5000))
        self.sync()
        self.want = self.hashes()

    def down(self):
        self.unmount()
        for layer in reversed(self.layers):
            layer.stop()

    def up(self):
        for layer in self.layers:
            layer.start()
        self.mount_device()

    def down_as_cut(self):
        """As if the power fails. The journal is copied first: the array may free what it has."""
        for image in reversed(self.images):
            run("cp", "--sparse=always", image, image + ".cut", check=True)
        self.log.append("power cut")
        self.down()
        for image in self.images:
            os.replace(image + ".cut", image)
        del self.layers[0].members[-1]  # the journal cannot be left out

    def detach(self):
        self.unmount()
        for layer in reversed(self.layers):
            try:
                layer.stop()
            except (kernel.NotMade, AttributeError):
                pass
        super().detach()

    def given(self):
        """Images that suffice, in any order."""
        r, images = self.random, dict(zip(self.loops, self.images))
        layer = self.layers[0]
        sound = [loop for loop in layer.members if loop in images and loop not in self.stale]
        left_out = [loop for loop in self.stale if r.random() < 0.4]
        if layer.spare > 0 and len(sound) > 1 and r.random() < 0.5:
            left_out += r.sample(sound, layer.spare)
        self.log.append(f"without {left_out}")
        found = [images[loop] for loop in images if loop not in left_out]
        r.shuffle(found)
        return found


def make_stack(seed, directory):
    """What a stack consists of, the images to read, and the hashes of its files."""
    with Stack(random.Random(seed), directory) as stack:
        stack.make()
        for layer in stack.layers:
            if stack.random.random() < 0.7:
                layer.change()
        is_cut = stack.layers[0].has_journal and stack.random.random() < 0.7
        (stack.down_as_cut if is_cut else stack.down)()
        return {"images": [os.path.basename(image) for image in stack.given()],
                "words": str(stack), "want": [line.decode() for line in stack.want],
                "volume": next((layer.volume for layer in stack.layers if layer.volume), None),
                "snapshot": next((layer.snapshot for layer in stack.layers if layer.snapshot),
                                 None)}


PREPARE = """
mkdir w root root/lib && mount -t hostfs hostfs w -o {directory} && mount -t tmpfs run /run
ln -s /usr/lib/uml/modules root/lib/modules
printf '#!/bin/sh\\nexec /sbin/modprobe -d /mnt/root "$@"\\n' > modprobe
chmod +x modprobe && echo /mnt/modprobe > /proc/sys/kernel/modprobe
for module in loop md-mod raid0 raid1 raid10 raid456 linear dm-mod dm-crypt dm-mirror dm-raid \\
    dm-snapshot dm-thin-pool; do ./modprobe $module; done
"""


def make_in_guest(seed, directory):
    """The same, made by a kernel in a guest."""
    script = PREPARE.format(directory=directory) + (
        f"python3 -B {os.path.abspath(__file__)} --in-guest {seed} /mnt/w")
    status, output = guest.run_guest(script, [], 600)
    lines = [line for line in output.decode(errors="replace").split("\n") if line]
    if status or not lines:
        raise kernel.NotMade(f"guest: status {status}: {lines[-3:]}")
    return json.loads(lines[-1])


def compare(options, seed, directory):
    os.chmod(directory, 0o755)
    made = (make_in_guest if options.guest else make_stack)(seed, directory)
    words = ["--key-file", os.path.join(directory, "key")]
    words += ["--volume", made["volume"]] if made["volume"] else []
    print(seed, made["words"], flush=True)
    program = kernel.Program(options.program, [os.path.join(directory, image)
                                               for image in made["images"]])
    result, want = program.ask("sum", *words), [line.encode() for line in made["want"]]
    found = sorted(result.stdout.splitlines())
    if result.returncode or found != want:
        yield (f"{made['words']}: sum: status {result.returncode}, {len(set(want) - set(found))} "
               f"of {len(want)} files differ: {result.stderr[-500:].decode()}")
    checked = program.ask("check", "--data", "-q", *words)
    if checked.returncode:
        yield (f"{made['words']}: check: status {checked.returncode}: "
               f"{checked.stdout[-500:].decode()}")
    if made["snapshot"]:
        words[-1] = made["snapshot"]
        refused = program.ask("info", *words)
        if refused.returncode != 3 or made["volume"].encode() not in refused.stderr:
            yield f"{made['words']}: the snapshot is not refused: {refused.stderr[-500:].decode()}"


def main():
    os.environ["DM_DISABLE_UDEV"] = "1"
    if sys.argv[1:2] == ["--in-guest"]:
        try:
            print(json.dumps(make_stack(int(sys.argv[2]), sys.argv[3])))
        except kernel.NotMade as error:
            print(error)
            return 1
        return 0
    options = kernel.parser(__doc__).parse_args()
    options.guest = not (os.path.exists("/proc/mdstat") and os.path.exists("/dev/mapper/control"))
    kernel.need("mkfs.btrfs", "btrfs", "mdadm", "lvm", "cryptsetup")
    if options.guest and not guest.is_there():
        print("skipped: without MD and the device mapper: stacks.py")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    return kernel.compare_each(options, kernel.seeds(options), compare)


if __name__ == "__main__":
    sys.exit(main())
