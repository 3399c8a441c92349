# A stand-in for nixpkgs (t_recipes.sh): the arguments that package.nix may ask for, and a mkDerivation that gives back
# what it is given. Names of packages are those of nixpkgs.
let
  names = [
    "addDriverRunpath"
    "autoreconfHook"
    "curl"
    "giflib"
    "gnutls"
    "jansson"
    "jemalloc"
    "libdrm"
    "libedit"
    "libjpeg"
    "libmicrohttpd"
    "libpng"
    "libwebp"
    "mpfr"
    "nettle"
    "pcre2"
    "pkg-config"
    "protobufc"
    "utf8proc"
    "zstd"
  ];
  packages = builtins.listToAttrs (
    map (name: {
      inherit name;
      value = name;
    }) names
  );
  pkgs = packages // {
    lib = {
      cleanSource = toString;
      licenses.mit = "MIT";
    };
    stdenv.mkDerivation = attributes: attributes;
  };
in
{
  callPackage =
    path: more:
    let
      package = import path;
    in
    package (builtins.intersectAttrs (builtins.functionArgs package) pkgs // more);
}
