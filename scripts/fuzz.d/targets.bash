# SPDX-License-Identifier: GPL-2.0-or-later
# The fuzz targets and what each consists of. Sourced by scripts/fuzz and by OSS-Fuzz.
fuzz_targets=(fuzz_program fuzz_image fuzz_log fuzz_stream fuzz_formats fuzz_volfile fuzz_codec
    fuzz_containers fuzz_list fuzz_overlay)

# fuzz_parts TARGET BUILD: the source files, macros and objects besides the library, in the array
# `parts`; the longest input; a dictionary and a folder of inputs, if there are any.
fuzz_parts() {
    parts=("tests/fuzz/$1.c" tests/fuzz/fail.c) dictionary='' inputs=''
    case $1 in
    fuzz_program | fuzz_image | fuzz_log)
        parts+=(tests/fuzz/edits.c tests/fuzz/edit_fields.c tests/fuzz/base_images.c
            tests/support/image_writer*.c) ;;
    esac
    case $1 in
    fuzz_program)
        longest=262144
        parts+=(-DFUZZ_MUTATE=packed_mutate tests/fuzz/packed*.c)
        mapfile -t -O "${#parts[@]}" parts < <(find "$2/src/cli" -name '*.o' ! -name main.o)
        parts+=("$2/libexport.a") ;;
    fuzz_image) longest=772 ;;
    fuzz_log) longest=769 ;;
    fuzz_stream) longest=2401 ;;
    fuzz_formats) longest=4200 ;;
    fuzz_list) longest=4096 ;;
    fuzz_volfile)
        longest=4096 inputs=tests/fuzz/volfiles dictionary=tests/fuzz/volfiles/words.dict ;;
    fuzz_overlay) longest=8192 inputs=tests/fuzz/overlays ;;
    fuzz_codec) longest=8192 inputs=tests/fuzz/codec ;;
    fuzz_containers)
        longest=33000 inputs=tests/fuzz/containers dictionary=tests/fuzz/containers.dict ;;
    *) return 1 ;;
    esac
}
