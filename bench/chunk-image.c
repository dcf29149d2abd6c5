/* SPDX-License-Identifier: GPL-2.0-or-later */
/* chunk-image COUNT DIRECTORY: writes DIRECTORY/dev1.img, a sparse image with COUNT data chunks of
 * 1 MiB. Kernels make chunks of up to 1 GiB: so many of those would take a disk of 100 TiB. */
#include <stdio.h>
#include <stdlib.h>

#include "support/image_writer.h"

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s COUNT DIRECTORY\n", argv[0]);
        return 2;
    }
    struct iw_image *image = iw_create(&(struct iw_options){.data_chunks = (unsigned)atoi(argv[1]),
                                                            .device_extent_length = 1 << 20});
    iw_write_files(image, argv[2]);
    iw_destroy(image);
    return 0;
}
