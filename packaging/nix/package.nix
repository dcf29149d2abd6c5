# SPDX-License-Identifier: GPL-2.0-or-later
# Evaluated with stand-ins for nixpkgs, but never built. In a checkout:
#     nix-build -E '(import <nixpkgs> {}).callPackage ./packaging/nix/package.nix {}'
{ lib, stdenv, pkg-config, python3, zstd, cmocka, fuse3, isa-l, json_c, libgcrypt, libnbd, libpng
, libseccomp, lz4, lzo, util-linux, xxHash, xz, zlib }:

stdenv.mkDerivation {
  pname = "btrfs-walk";
  version = "0.4.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ pkg-config python3 zstd ];
  buildInputs = [
    fuse3 isa-l json_c libgcrypt libnbd libpng libseccomp lz4 lzo util-linux xxHash xz zlib zstd
  ];
  nativeCheckInputs = [ cmocka ];

  makeFlags = [ "PREFIX=${placeholder "out"}" ];
  enableParallelBuilding = true;
  postPatch = "patchShebangs scripts tests";

  meta = {
    description = "Reads unmounted btrfs file systems";
    homepage = "https://github.com/btrfs-walk/btrfs-walk";
    license = lib.licenses.gpl2Plus;
    platforms = lib.platforms.linux;
    mainProgram = "btrfs-walk";
  };
}
