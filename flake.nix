{
  description = "Serve, try and measure models on Tenstorrent Blackhole cards";

  # The only input. Without a binary cache: --override-input nixpkgs path:./pkgs/offline (bootstrap does that).
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      forAllSystems =
        f:
        lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (
          system:
          f {
            inherit self lib system;
            pkgs = nixpkgs.legacyPackages.${system};
          }
        );
    in
    {
      # pins and arms as Nix values
      lib = import ./pkgs/lib.nix { inherit lib; };

      # ttx, and the simulated engine as an image
      packages = forAllSystems (
        { pkgs, ... }:
        rec {
          ttx = pkgs.callPackage ./pkgs/ttx.nix { };
          default = ttx;
          sim-image = pkgs.callPackage ./pkgs/sim-image.nix { };
        }
      );
      overlays.default = final: _: { ttx = final.callPackage ./pkgs/ttx.nix { }; };

      # services.tenstorrent-serving, and production made with it
      nixosModules = import ./modules;

      # one file per check
      checks = forAllSystems (import ./checks);

      devShells = forAllSystems (
        { pkgs, ... }:
        {
          default = pkgs.callPackage ./pkgs/dev-shell.nix { };
        }
      );
      formatter = forAllSystems ({ pkgs, ... }: pkgs.nixfmt-tree);
    };
}
