# SPDX-License-Identifier: GPL-2.0-or-later
# Writes the contents of a file to stdout: python3 copy-out.py IMAGE PATH
import ctypes, sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p

class Error(Structure): _fields_ = [("code", c_int), ("system", c_int), ("message", c_char_p)]
class Options(Structure): _fields_ = [("struct_size", c_size_t), ("paths", POINTER(c_char_p)),
    ("path_count", c_size_t), ("rest", c_void_p * 7)]

def call(name, *arguments):
    function = library[name]
    function.restype = POINTER(Error)
    error = function(*arguments)
    if error: sys.exit(error.contents.message)

library, image, path = ctypes.CDLL("libbtrfs-walk.so.2"), *map(str.encode, sys.argv[1:3])
fs, file, got = c_void_p(), c_void_p(), c_size_t(1)
place, buffer = ctypes.create_string_buffer(32), ctypes.create_string_buffer(1 << 20)
options = Options(ctypes.sizeof(Options), (c_char_p * 1)(image), 1)
call("bw_fs_open", byref(options), byref(fs))
call("bw_lookup", fs, None, path, True, place)
call("bw_file_open", fs, place, None, byref(file))
offset = 0
while got:
    call("bw_file_read", file, c_uint64(offset), buffer, c_size_t(len(buffer)), byref(got))
    sys.stdout.buffer.write(buffer[:got.value])
    offset += got.value
