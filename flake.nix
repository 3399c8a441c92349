# jitrun for Nix: nix run . -- MODEL, or nix run github:jitrun/jitrun -- MODEL. Linux on x86-64 alone. Without flakes:
# nix-build packaging/nix.
{
  description = "Run large language models with code generated for them";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      pkgs = nixpkgs.legacyPackages.x86_64-linux;
    in
    {
      packages.x86_64-linux.default = pkgs.callPackage ./packaging/nix/package.nix { };
    };
}
