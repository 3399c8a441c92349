# jitrun for Nix: nix build ./packaging/nix, or nix run ./packaging/nix -- MODEL. Linux on x86-64 alone.
{
  description = "Run large language models with code generated for them";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      pkgs = nixpkgs.legacyPackages.x86_64-linux;
    in
    {
      packages.x86_64-linux.default = pkgs.callPackage ./package.nix { };
    };
}
