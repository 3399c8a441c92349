# jitrun from these sources. The programs find NVIDIA's driver library where NixOS has it.
{
  lib,
  stdenv,
  autoreconfHook,
  pkg-config,
  addDriverRunpath,
  curl,
  giflib,
  gnutls,
  jansson,
  jemalloc,
  libdrm,
  libedit,
  libjpeg,
  libmicrohttpd,
  libpng,
  libwebp,
  mpfr,
  nettle,
  pcre2,
  protobufc,
  utf8proc,
  zstd,
}:

stdenv.mkDerivation {
  pname = "jitrun";
  version = "0.3.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [
    autoreconfHook
    pkg-config
    addDriverRunpath
  ];
  buildInputs = [
    curl
    giflib
    gnutls
    jansson
    jemalloc
    libdrm
    libedit
    libjpeg
    libmicrohttpd
    libpng
    libwebp
    mpfr
    nettle
    pcre2
    protobufc
    utf8proc
    zstd
  ];

  configureFlags = [ "--without-hsakmt" "--without-mpi" ];
  enableParallelBuilding = true;

  doInstallCheck = true;
  installCheckPhase = ''
    XDG_CACHE_HOME=$TMPDIR $out/bin/jitrun ${../../models/tale-q8_0.gguf} --prompt "Once upon a time" -n 40 --temp 0
  '';

  postFixup = ''
    addDriverRunpath $out/lib/jitrun/libjitrun-programs-*.so $out/lib/libjitrun.so.1.*
  '';

  meta = {
    description = "Run large language models with code generated for them";
    homepage = "https://github.com/jitrun/jitrun";
    license = lib.licenses.mit;
    mainProgram = "jitrun";
    platforms = [ "x86_64-linux" ];
  };
}
